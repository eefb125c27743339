#!/usr/bin/python3
"""tests/rows.py counts a row only when every test that names it passed."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rows  # noqa: E402

PYTHON = '''
class OneTest(Case):
    def test_E1_E2_streams_survive(self):
    def test_E3_a_stop_is_noticed(self):
    def test_E4_false_alarms(self):
    def test_something_else(self):
'''
CPP = '''
TEST(CoreTest, F7_StopsAtTwo) {
TEST_F(CoreTest, F7_Quarantines) {
TEST(LongNameOfASuiteTest,
     F8_KeepsThem) {
TEST(CoreTest, Other) {
'''
LOG = '''Start testing: Nov 30 21:56 UTC
----------------------------------------------------------
1/3 Testing: core_test
1/3 Test: core_test
Command: "core_test"
Output:
----------------------------------------------------------
[ RUN      ] CoreTest.F7_StopsAtTwo
[       OK ] CoreTest.F7_StopsAtTwo (1 ms)
[ RUN      ] CoreTest.F7_Quarantines
[  FAILED  ] CoreTest.F7_Quarantines (1 ms)
[ RUN      ] LongNameOfASuiteTest.F8_KeepsThem
[       OK ] LongNameOfASuiteTest.F8_KeepsThem (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] CoreTest.F7_Quarantines
<end of output>
Test Failed.
2/3 Testing: one_test
2/3 Test: one_test
Output:
----------------------------------------------------------
test_E1_E2_streams_survive (__main__.OneTest) ... kill 1: all is ok
still going
ok
test_E3_a_stop_is_noticed (__main__.OneTest) ... skipped 'no stops here'
test_E4_false_alarms (__main__.OneTest)
Says more. ... ok
test_something_else (__main__.OneTest) ... FAIL

======================================================================
FAIL: test_something_else (__main__.OneTest)
<end of output>
Test Failed.
'''


class RowsTest(unittest.TestCase):
    def setUp(self):
        self.tests = rows.named_tests({"one_test.py": PYTHON, "core_test.cc": CPP})

    def verdicts(self, wanted, log=LOG):
        return rows.judge(wanted, self.tests, rows.results_of(log))

    def test_tests_name_their_rows(self):
        self.assertEqual(sorted(self.tests), [
            "CoreTest.F7_Quarantines", "CoreTest.F7_StopsAtTwo",
            "LongNameOfASuiteTest.F8_KeepsThem", "test_E1_E2_streams_survive",
            "test_E3_a_stop_is_noticed", "test_E4_false_alarms"])
        self.assertEqual(rows.rows_of("test_E1_E2_streams_survive"), ["E1", "E2"])
        self.assertEqual(rows.rows_of("F16_AHotPrefix"), ["F16"])

    def test_a_row_is_green_when_all_its_tests_passed(self):
        self.assertEqual(self.verdicts(["E1", "E2", "E4", "F8"]),
                         {"E1": "", "E2": "", "E4": "", "F8": ""})

    def test_what_failed_or_was_skipped_or_did_not_run_or_is_not_there_is_named(self):
        self.assertEqual(self.verdicts(["F7", "E3", "G1"]), {
            "F7": "CoreTest.F7_Quarantines failed", "E3": "test_E3_a_stop_is_noticed skipped",
            "G1": "no test names it"})
        without = LOG[:LOG.index("2/3 Testing")]
        self.assertEqual(self.verdicts(["E1"], without)["E1"],
                         "test_E1_E2_streams_survive not run")

    def test_a_failed_subtest_is_a_failure(self):
        log = LOG.replace("still going\nok\n", "still going\n") + (
            "FAIL: test_E1_E2_streams_survive (__main__.OneTest) [x]\n<end of output>")
        self.assertEqual(self.verdicts(["E1"], log.replace("<end of output>\nTest Failed.\n\n", ""))
                         ["E1"], "test_E1_E2_streams_survive failed")

    def test_a_test_that_was_cut_off_did_not_pass(self):
        cut = LOG[:LOG.index("still going")] + "<end of output>\n"
        self.assertEqual(self.verdicts(["E2"], cut)["E2"], "test_E1_E2_streams_survive failed")

    def test_the_page_lists_rows_once(self):
        wanted = rows.wanted_rows(rows.read(os.path.join(rows.ROOT, "docs/faults.md")))
        self.assertEqual(len(wanted), len(set(wanted)))
        self.assertGreater(len(wanted), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
