# embed_files(<out.cc> <namespace> FILES ...): writes a source file at build time that defines, in <namespace>,
#   struct EmbeddedFile { const char* name; const unsigned char* bytes; size_t size; };
#   extern const EmbeddedFile kEmbeddedFiles[];
#   extern const size_t kNumEmbeddedFiles;
# Names are those of the files, without folders. Whoever uses the table declares the three.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TANDEM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(embed_files out namespace)
    cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
    list(JOIN ARG_FILES "|" files)
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DNAMESPACE=${namespace}" "-DFILES=${files}" -P ${TANDEM_EMBED_SCRIPT}
      DEPENDS ${ARG_FILES} ${TANDEM_EMBED_SCRIPT}
      VERBATIM)
  endfunction()
  return()
endif()

string(REPLACE "|" ";" FILES "${FILES}")
set(arrays "")
set(table "")
set(count 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "const unsigned char kFile${count}[] = {\n${bytes}};\n")
  string(APPEND table "    {\"${name}\", kFile${count}, ${size}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT}.new "// Generated from the files named below.
#include <cstddef>

namespace ${NAMESPACE} {
namespace {
${arrays}}  // namespace

struct EmbeddedFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};
extern const EmbeddedFile kEmbeddedFiles[] = {
${table}};
extern const size_t kNumEmbeddedFiles = ${count};

}  // namespace ${NAMESPACE}
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(TOUCH ${OUT})
