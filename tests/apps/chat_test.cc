// A conversation as a person has it: the real program in a terminal, or fed by a pipe.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/apps/tandem_program.h"

namespace tandem {
namespace {

using test::ProgramResult;
using test::TerminalProgram;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPrompt = "tandem> ";

class ChatTest : public ::testing::Test {
 protected:
  ChatTest() : home_(test::temp_path("home")) { std::filesystem::create_directories(home_); }

  test::Environment environment() const { return {{"HOME", home_}, {"TERM", "xterm"}}; }
  static std::vector<std::string> arguments() { return {"chat", "--nothink", "--temp", "0"}; }

  /// Types a line; what the program writes up to its next prompt.
  static std::string say(TerminalProgram& chat, const std::string& line) {
    chat.type(line + "\r");
    const std::string echo = chat.wait_for("\n");
    return echo + chat.wait_for(kPrompt);
  }

  /// Returns while an answer is being written that takes far longer than a test.
  static void start_slow_answer(TerminalProgram& chat) {
    chat.wait_for(kPrompt);
    chat.type("/power 5\r");
    chat.wait_for(kPrompt);
    chat.type("Write a short story about a fox and a lamp.\r");
    chat.wait_for("Once");
  }

  std::string home_;
};

TEST_F(ChatTest, TalksOverSeveralTurnsAndReusesThem) {
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  EXPECT_THAT(chat.wait_for(kPrompt), HasSubstr("/help lists the commands"));
  EXPECT_THAT(say(chat, "What is the capital of France?"), HasSubstr("Paris"));
  const std::string second = say(chat, "Hello!");
  EXPECT_THAT(second, HasSubstr("prompt tokens ("));
  EXPECT_THAT(second, Not(HasSubstr("(0 cached)")));
  EXPECT_THAT(say(chat, "/reset"), HasSubstr("new chat"));
  chat.type("\x04");
  EXPECT_EQ(chat.wait_for_exit(), 0);
}

TEST_F(ChatTest, ObeysItsCommands) {
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  chat.wait_for(kPrompt);
  const std::string help = say(chat, "/help");
  for (const char* command :
       {"/think", "/think-max", "/nothink", "/ctx", "/power", "/read", "/save", "/load", "/quit"}) {
    EXPECT_THAT(help, HasSubstr(command));
  }
  EXPECT_THAT(say(chat, "/frobnicate"), HasSubstr("unknown command /frobnicate"));
  EXPECT_THAT(say(chat, "/ctx"), HasSubstr("0 of 32768 tokens"));
  EXPECT_THAT(say(chat, "/ctx 2048"), HasSubstr("context of 2048 tokens"));
  EXPECT_THAT(say(chat, "/ctx lots"), HasSubstr("\"lots\" is not a number"));
  EXPECT_THAT(say(chat, "/power 0"), HasSubstr("\"0\" is not a number from 1 to 100"));
  EXPECT_THAT(say(chat, "/think"), HasSubstr("reasons before it answers"));
  EXPECT_THAT(say(chat, "/nothink"), HasSubstr("answers at once"));
  EXPECT_THAT(say(chat, "/read"), HasSubstr("name a file"));
  EXPECT_THAT(say(chat, "/read /no/such/file"), HasSubstr("/no/such/file"));
  EXPECT_THAT(say(chat, "/save"), HasSubstr("name a file"));
  EXPECT_THAT(say(chat, "/save " + home_ + "/chat"), HasSubstr("nothing to save"));
  EXPECT_THAT(say(chat, "/load /no/such/file"), HasSubstr("/no/such/file"));
  chat.type("/quit\r");
  EXPECT_EQ(chat.wait_for_exit(), 0);
}

TEST_F(ChatTest, ReadsAFileAsAMessage) {
  const std::string path = home_ + "/question.txt";
  std::ofstream(path) << "What is the capital of France?";
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  chat.wait_for(kPrompt);
  EXPECT_THAT(say(chat, "/read " + path), HasSubstr("Paris"));
}

TEST_F(ChatTest, SavesAndLoadsAConversation) {
  const std::string path = home_ + "/saved chat";
  {
    TerminalProgram chat(test::tandem_path(), arguments(), environment());
    chat.wait_for(kPrompt);
    say(chat, "What is the capital of France?");
    EXPECT_THAT(say(chat, "/save " + path), HasSubstr("saved"));
  }
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  chat.wait_for(kPrompt);
  EXPECT_THAT(say(chat, "/load " + path), HasSubstr("loaded 2 messages"));
  EXPECT_THAT(say(chat, "/ctx"), Not(HasSubstr("\n0 of 32768")));
  EXPECT_THAT(say(chat, "Hello!"), Not(HasSubstr("(0 cached)"))) << "the state came back too";
}

TEST_F(ChatTest, RefusesADamagedSavedChatAndGoesOn) {
  const auto framed = [](const std::string& transcript) {
    const uint64_t size = transcript.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + transcript;
  };
  const std::vector<std::string> damaged = {
      "",
      "short",
      std::string(100, '\xff'),
      framed("{"),
      framed("[]"),
      framed(R"({"think":"x","messages":[]})"),
      framed(R"({"think":99,"messages":[]})"),
      framed(R"({"think":0,"messages":[{"role":77,"content":"x"}]})"),
      framed(R"({"think":0,"messages":[{"role":1e30,"content":"x"}]})"),
      framed(R"({"think":0,"messages":[]})"),
      framed(std::string(100000, '['))};
  std::string input;
  for (size_t i = 0; i < damaged.size(); ++i) {
    const std::string path = home_ + "/damaged" + std::to_string(i);
    std::ofstream(path, std::ios::binary) << damaged[i];
    input += "/load " + path + "\n";
  }
  const ProgramResult result =
      test::run_program(test::tandem_path(), arguments(), input + "Hello!\n", environment());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("Hello"));
  size_t num_refusals = 0;
  for (size_t at = 0; (at = result.err.find("tandem: ", at)) != std::string::npos; ++at) {
    ++num_refusals;
  }
  EXPECT_EQ(num_refusals, damaged.size()) << result.err;
}

TEST_F(ChatTest, CtrlCStopsAnAnswerAndKeepsTheChat) {
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  start_slow_answer(chat);
  chat.type("\x03");
  EXPECT_THAT(chat.wait_for(kPrompt), HasSubstr("stopped"));
  chat.type("/power 100\r");
  chat.wait_for(kPrompt);
  EXPECT_THAT(say(chat, "Hello!"), Not(HasSubstr("(0 cached)")));
  chat.type("\x04");
  EXPECT_EQ(chat.wait_for_exit(), 0);
}

TEST_F(ChatTest, CtrlCAtThePromptDropsTheLine) {
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  chat.wait_for(kPrompt);
  chat.type("/qui");
  chat.wait_for("/qui");
  chat.type("\x03");
  chat.wait_for(kPrompt);
  EXPECT_THAT(say(chat, "/ctx"), HasSubstr("\n0 of 32768"));
  chat.type("\x04");
  EXPECT_EQ(chat.wait_for_exit(), 0);
}

TEST_F(ChatTest, ASecondCtrlCDropsNoLaterLine) {
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  start_slow_answer(chat);
  chat.type("\x03\x03");  // the second comes about when the prompt does
  chat.wait_for("stopped");
  chat.type("/ctx\r");
  chat.wait_for("of 32768 tokens in use");
  chat.type("\x04");
  EXPECT_EQ(chat.wait_for_exit(), 0);
}

TEST_F(ChatTest, KeepsAHistoryOfLines) {
  {
    TerminalProgram chat(test::tandem_path(), arguments(), environment());
    chat.wait_for(kPrompt);
    say(chat, "/ctx");
    chat.type("/quit\r");
    EXPECT_EQ(chat.wait_for_exit(), 0);
  }
  EXPECT_THAT(test::read_text(home_ + "/.tandem_history"), HasSubstr("/ctx"));
  TerminalProgram chat(test::tandem_path(), arguments(), environment());
  chat.wait_for(kPrompt);
  chat.type("\x1b[A\x1b[A\r");  // up, up: the line before /quit
  EXPECT_THAT(chat.wait_for("tokens in use"), HasSubstr("0 of 32768"));
}

TEST_F(ChatTest, PrintsNoPromptsIntoAPipe) {
  const ProgramResult result = test::run_program(
      test::tandem_path(), arguments(), "What is the capital of France?\n\n/frobnicate\n",
      environment());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "The capital of France is Paris.\n");
  EXPECT_THAT(result.out + result.err, Not(HasSubstr(kPrompt)));
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.err, HasSubstr("unknown command /frobnicate"));
}

TEST_F(ChatTest, AnswersTheFirstMessageOfItsArguments) {
  std::vector<std::string> with_prompt = arguments();
  with_prompt.insert(with_prompt.end(), {"-p", "What is the capital of France?"});
  const ProgramResult result =
      test::run_program(test::tandem_path(), with_prompt, "", environment());
  EXPECT_EQ(result.out, "The capital of France is Paris.\n");
}

}  // namespace
}  // namespace tandem
