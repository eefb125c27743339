#include "launcher/version.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"

namespace trireme::launcher {
namespace {

constexpr size_t RoundedUp(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// The build id among the notes of a segment, or empty.
std::string BuildIdIn(const char* notes, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const size_t name = sizeof(note);
    const size_t content = name + RoundedUp(note.n_namesz);
    const size_t end = content + RoundedUp(note.n_descsz);
    if (end > bytes) {
      break;
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      return absl::BytesToHexString({notes + content, note.n_descsz});
    }
    notes += end;
    bytes -= end;
  }
  return "";
}

// Of the first object, which is the program.
int FindBuildId(dl_phdr_info* object, size_t /*size*/, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE) {
      auto* const id = static_cast<std::string*>(found);
      *id = BuildIdIn(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr),
                      segment.p_memsz);
      if (!id->empty()) {
        return 1;
      }
    }
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  std::string id;
  ::dl_iterate_phdr(FindBuildId, &id);
  return id.empty() ? TRIREME_VERSION " " TRIREME_COMPILER : id;
}

std::string VersionNumber() { return TRIREME_VERSION; }

std::string VersionText() {
  std::string tables;
  const kernels::KernelTableList list = kernels::RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    absl::StrAppend(&tables, i == 0 ? "" : ", ", list.tables[i]->name);
  }
  if (*list.missing != '\0') {
    absl::StrAppend(&tables, "; not ", list.missing);
  }
  return absl::StrCat("trireme " TRIREME_VERSION "\ncompiler: " TRIREME_COMPILER
                      "\nbuild type: " TRIREME_BUILD_TYPE "\nMPI: " TRIREME_MPI_STATE
                      "\ngRPC: " TRIREME_GRPC_STATE "\nkernel tables: ",
                      tables);
}

}  // namespace trireme::launcher
