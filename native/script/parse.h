// The script language's form: lines of words, in sections. See script.h for the language.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mpsforge::script {

struct Line {
  int number = 0;
  std::vector<std::string> words;
  size_t done = 0;  // of "repeat": the index of its "done"
};

struct Section {
  std::string name;
  std::vector<Line> lines;
};

struct Program {
  Section setup;
  std::vector<Section> threads;
  std::map<std::string, Section> blocks;
  Section end;
};

// Returns what is wrong, with its line, or an empty text.
std::string parse(const std::string& text, Program& program);

}  // namespace mpsforge::script
