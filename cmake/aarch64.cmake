# Cross-compiles the static libraries for 64-bit ARM with Debian's g++-aarch64-linux-gnu: headers of the libraries we
# use are the same on both, so what this machine has serves; only check_kernels, which needs no library, is linked.
# tests/aarch64.sh uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Packages are looked for where the compiler's machine has them; ours lie with the host's.
file(GLOB host_libraries LIST_DIRECTORIES true /usr/lib/*-linux-gnu)
list(APPEND CMAKE_LIBRARY_PATH ${host_libraries})
list(TRANSFORM host_libraries APPEND /cmake)
list(APPEND CMAKE_PREFIX_PATH ${host_libraries})

# Two headers of OpenSSL lie in the host's own folder, from which nothing else may come.
file(GLOB openssl_headers /usr/include/*-linux-gnu/openssl)
set(host_headers ${CMAKE_BINARY_DIR}/host_headers)
file(MAKE_DIRECTORY ${host_headers})
foreach(folder ${openssl_headers})
  file(CREATE_LINK ${folder} ${host_headers}/openssl SYMBOLIC)
endforeach()
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${host_headers})
