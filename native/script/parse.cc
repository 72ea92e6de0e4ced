#include "parse.h"

#include <sstream>

namespace mpsforge::script {

namespace {

std::string at(int line, const std::string& what) { return "line " + std::to_string(line) + ": " + what; }

// Splits at blanks; "quoted words" may hold blanks.
std::vector<std::string> split(const std::string& line, bool* unended) {
  std::vector<std::string> words;
  bool inside = false;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (quoted && !inside) {
        words.emplace_back();
        inside = true;
      }
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\r')) {
      inside = false;
    } else if (!quoted && !inside && c == '#') {
      break;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  *unended = quoted;
  return words;
}

// Pairs every "repeat" with its "done".
std::string pair_blocks(Section& section) {
  std::vector<size_t> open;
  for (size_t i = 0; i < section.lines.size(); ++i) {
    const Line& line = section.lines[i];
    if (line.words[0] == "repeat") {
      if (line.words.size() != 2) return at(line.number, "repeat takes a number");
      open.push_back(i);
    } else if (line.words[0] == "done") {
      if (open.empty()) return at(line.number, "done without repeat");
      section.lines[open.back()].done = i;
      open.pop_back();
    }
  }
  return open.empty() ? "" : at(section.lines[open.back()].number, "repeat without done");
}

}  // namespace

std::string parse(const std::string& text, Program& program) {
  std::istringstream input(text);
  std::string raw;
  Section* section = &program.setup;
  program.setup.name = "main";
  program.end.name = "main";
  for (int number = 1; std::getline(input, raw); ++number) {
    bool unended = false;
    const std::vector<std::string> words = split(raw, &unended);
    if (unended) return at(number, "a quote is not closed");
    if (words.empty()) continue;
    const bool heading = words[0] == "thread" || words[0] == "block";
    if (heading && words.size() != 2) return at(number, words[0] + " takes a name");
    if (words[0] == "thread") {
      for (const Section& other : program.threads) {
        if (other.name == words[1]) return at(number, "a second thread " + words[1]);
      }
      program.threads.push_back({words[1], {}});
      section = &program.threads.back();
    } else if (words[0] == "block") {
      if (program.blocks.count(words[1]) != 0) return at(number, "a second block " + words[1]);
      section = &program.blocks[words[1]];
      section->name = words[1];
    } else if (words[0] == "end" && words.size() == 1) {
      section = &program.end;
    } else {
      section->lines.push_back({number, words, 0});
    }
  }
  std::vector<Section*> sections = {&program.setup, &program.end};
  for (Section& thread : program.threads) sections.push_back(&thread);
  for (auto& [name, block] : program.blocks) sections.push_back(&block);
  for (Section* each : sections) {
    if (std::string wrong = pair_blocks(*each); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace mpsforge::script
