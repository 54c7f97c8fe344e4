# embed_files(<out.cc> <namespace> FILES ...): writes a source file at build time that defines
#   std::span<const tandem::EmbeddedFile> <namespace>::embedded_files();
# Whoever calls it declares it.
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
  string(APPEND table "    {\"${name}\", {reinterpret_cast<const char*>(kFile${count}), ${size}}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT}.new "// Generated from the files named below.
#include <span>

#include \"base/embedded_file.h\"

namespace ${NAMESPACE} {
namespace {
${arrays}
const tandem::EmbeddedFile kFiles[] = {
${table}};
}  // namespace

std::span<const tandem::EmbeddedFile> embedded_files() {
  return kFiles;
}

}  // namespace ${NAMESPACE}
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(TOUCH ${OUT})
