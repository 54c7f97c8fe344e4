// Help of every subcommand, and what becomes of bad input: one line and exit code 2.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/apps/tandem_program.h"

namespace tandem {
namespace {

using test::ProgramResult;
using test::tandem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kHelpColumn = 30;  // where CLI11 begins descriptions

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> subcommands() {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(tandem({"--help"}).out)) {
    if (listed && line.starts_with("  ") && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    listed = listed ? !line.empty() : line == "Subcommands:";
  }
  return names;
}

bool has_text_at(const std::string& line, size_t column) {
  return line.size() > column && line.find_first_not_of(' ', column) != std::string::npos;
}

/// Fails unless the program says one line on standard error that contains `text`, and ends with 2.
void expect_refused(const ProgramResult& result, const std::string& text) {
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("tandem: "));
  EXPECT_THAT(result.err, HasSubstr(text));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.find_first_of("\t\r\x1b"), std::string::npos) << "plain text";
}

/// The bundled model with its bytes changed.
template <class Change>
std::string damaged_model(const std::string& name, Change change) {
  std::string bytes = test::read_text(test::nano_path());
  change(bytes);
  const std::string path = test::temp_path(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

void replace(std::string& bytes, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
}

TEST(HelpTest, ListsTheSubcommands) {
  const std::vector<std::string> names = subcommands();
  for (const char* name : {"chat", "run", "score", "tokenize", "inspect"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

TEST(HelpTest, DescribesEveryOptionOfEverySubcommand) {
  for (const std::string& name : subcommands()) {
    const ProgramResult help = tandem({name, "--help"});
    EXPECT_EQ(help.exit_code, 0) << name;
    EXPECT_EQ(help.err, "") << name;
    const std::vector<std::string> lines = lines_of(help.out);
    int num_options = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const size_t dash = lines[i].find_first_not_of(' ');
      if (dash == std::string::npos || dash < 2 || dash > 6 || lines[i][dash] != '-') continue;
      ++num_options;
      const size_t column = kHelpColumn + dash - 2;
      // A long option has its description on the next line.
      const bool next = i + 1 < lines.size() &&
                        lines[i + 1].starts_with(std::string(column, ' ')) &&
                        has_text_at(lines[i + 1], column);
      const bool same =
          lines[i].size() > column && lines[i][column - 1] == ' ' && has_text_at(lines[i], column);
      EXPECT_TRUE(same || next) << name << ": " << lines[i];
    }
    EXPECT_GE(num_options, 3) << name;
  }
}

TEST(HelpTest, PrintsItsVersion) {
  const ProgramResult version = tandem({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("tandem "));
}

TEST(BadUsageTest, RefusesWhatItDoesNotKnow) {
  expect_refused(tandem({}), "subcommand is required");
  expect_refused(tandem({"frobnicate"}), "unknown command frobnicate");
  expect_refused(tandem({"run", "-p", "x", "--frobnicate"}), "--frobnicate");
  expect_refused(tandem({"run"}), "--prompt");
  expect_refused(tandem({"run", "-p", "x", "--prompt-file", "y"}), "--prompt");
  expect_refused(tandem({"run", "-p", "x", "--think", "--nothink"}), "--think");
  expect_refused(tandem({"run", "-p", "x", "--temp", "warm"}), "--temp");
  expect_refused(tandem({"run", "-p", "x", "--temp", "-1"}), "temperature is -1");
  expect_refused(tandem({"run", "-p", "x", "--ctx", "0"}), "--ctx");
  expect_refused(tandem({"run", "-p", "x", "--power", "101"}), "--power");
  expect_refused(tandem({"run", "-p", "x", "--top-p", "2"}), "top_p is 2");
  expect_refused(tandem({"bench", "--layers", "3"}), "--synthetic");
  expect_refused(tandem({"bench", "--synthetic", "flash-q9"}), "flash-q2");
  expect_refused(tandem({"bench", "--synthetic", "pro-q2", "--layers", "99"}), "61 layers, not 99");
  expect_refused(tandem({"bench", "--synthetic", "flash-q2", "-m", "x.gguf"}), "--model");
  expect_refused(tandem({"run", "-p", "x", "--device", "cuda", "--exact"}), "--device cpu");
  expect_refused(tandem({"tokenize", "--decode", "123456"}), "no token 123456");
  expect_refused(tandem({"tokenize", "--decode", "-1"}), "-1");
}

TEST(BadUsageTest, RefusesFilesThatAreNotThere) {
  expect_refused(tandem({"run", "-p", "x", "-m", "/no/such.gguf"}), "/no/such.gguf");
  expect_refused(tandem({"run", "--prompt-file", "/no/such.txt"}), "/no/such.txt");
  expect_refused(tandem({"run", "-p", "x", "--tools", "/no/such.json"}), "/no/such.json");
  expect_refused(tandem({"inspect", "/no/such.gguf"}), "/no/such.gguf");
  expect_refused(tandem({"score", "/no/such.txt"}), "/no/such.txt");
  expect_refused(tandem({"tokenize", "--tokenizer", "/no/such.json", "-p", "x"}), "/no/such.json");
  expect_refused(tandem({"chat", "-m", "/no/such.gguf"}), "/no/such.gguf");
  expect_refused(tandem({"run", "-p", "x", "-m", "/tmp"}), "/tmp");
}

TEST(BadUsageTest, RefusesWhatItCannotWriteBeforeItAnswers) {
  expect_refused(tandem({"run", "-p", "x", "--dump-logits", "/no/such/file"}), "/no/such/file");
  expect_refused(tandem({"run", "-p", "x", "--dump-logprobs", "/no/such/file"}), "/no/such/file");
}

TEST(BadUsageTest, RefusesAPromptLongerThanTheContext) {
  expect_refused(tandem({"run", "-p", "one two three four", "--ctx", "4"}), "raise --ctx");
  expect_refused(tandem({"run", "--raw", "-p", ""}), "no tokens");
  const std::string path = test::temp_path("long.txt");
  std::ofstream(path) << "one two three four five six";
  expect_refused(tandem({"score", path, "--ctx", "3"}), "raise --ctx");
}

TEST(BadUsageTest, RefusesTextThatIsNoUtf8) {
  expect_refused(tandem({"run", "-p", "\xff\xfe"}), "UTF-8");
  expect_refused(tandem({"tokenize", "-p", "\xff\xfe"}), "UTF-8");
}

TEST(BadModelTest, RefusesATruncatedFile) {
  const size_t size = test::read_text(test::nano_path()).size();
  for (const size_t kept : {size_t{0}, size_t{3}, size_t{20}, size_t{5000}, size / 2, size - 1}) {
    const std::string path =
        damaged_model("cut.gguf", [&](std::string& bytes) { bytes.resize(kept); });
    expect_refused(tandem({"run", "-p", "x", "-m", path}), path);
  }
}

TEST(BadModelTest, RefusesAnotherArchitecture) {
  const std::string path = damaged_model("arch.gguf", [](std::string& bytes) {
    const size_t key = bytes.find("general.architecture");
    ASSERT_NE(key, std::string::npos);
    const size_t value = key + std::string("general.architecture").size() + 4 + 8;
    bytes[value] = 'z';
  });
  expect_refused(tandem({"run", "-p", "x", "-m", path}), "zeepseek");
}

TEST(BadModelTest, NamesAMissingTensor) {
  const std::string path = damaged_model("tensor.gguf", [](std::string& bytes) {
    replace(bytes, "output_norm.weight", "output_nrom.weight");
  });
  expect_refused(tandem({"run", "-p", "x", "-m", path}), "output_norm.weight");
}

TEST(BadModelTest, RefusesWhatIsNoModelAtAll) {
  expect_refused(tandem({"run", "-p", "x", "-m", "/etc/hostname"}), "/etc/hostname");
}

}  // namespace
}  // namespace tandem
