# sluice_target(NAME): our flags for one of our own targets. Third-party headers come in as SYSTEM.
function(sluice_target name)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wformat=2 -Wcast-qual -Wwrite-strings -Wnull-dereference
    $<$<COMPILE_LANGUAGE:C>:-Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum>
    $<$<BOOL:${SLUICE_WERROR}>:-Werror>
    -fno-omit-frame-pointer)
  if(SLUICE_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${name} PRIVATE -fsanitize=${SLUICE_SANITIZE})
  endif()
  if(SLUICE_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT SLUICE_SANITIZE)
    target_compile_options(${name} PRIVATE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong)
    target_link_options(${name} PRIVATE -Wl,-z,relro,-z,now)
  endif()
endfunction()

# sluice_library(NAME DEPENDS...): a static library of all .c files of the calling folder (and listed subfolders).
function(sluice_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(${name} STATIC ${sources})
  sluice_target(${name})
  target_link_libraries(${name} PUBLIC ${ARGN})
endfunction()
