#include "rewrite.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace mpsforge::msl {
namespace {

struct Token {
  size_t begin, end;
  size_t line;
};

// What a parameter of a kernel has, and its name.
struct Parameter {
  std::string attribute;  // a template argument
  std::string name;
};

struct Failure {
  size_t line;
  std::string message;
};

const std::set<std::string>& values() {
  static const std::set<std::string> names = {"thread_position_in_grid",
                                              "thread_position_in_threadgroup",
                                              "threadgroup_position_in_grid",
                                              "threads_per_threadgroup",
                                              "dispatch_threads_per_threadgroup",
                                              "threads_per_grid",
                                              "grid_size",
                                              "threadgroups_per_grid",
                                              "thread_index_in_threadgroup",
                                              "thread_index_in_simdgroup",
                                              "simdgroup_index_in_threadgroup",
                                              "threads_per_simdgroup",
                                              "thread_execution_width",
                                              "simdgroups_per_threadgroup",
                                              "dispatch_simdgroups_per_threadgroup"};
  return names;
}

// Attributes without a meaning here.
const std::set<std::string>& ignored() {
  static const std::set<std::string> names = {"max_total_threads_per_threadgroup", "required_threads_per_threadgroup",
                                              "id", "kernel", "host_name"};
  return names;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Rewriter {
 public:
  Rewriter(const std::string& text, const std::string& headers) : text_(text), headers_(headers) {}

  Rewritten run() {
    try_split();
    if (failure_.message.empty()) {
      while (at_ < tokens_.size() && failure_.message.empty()) step();
    }
    if (!failure_.message.empty()) {
      return {"", "program_source:" + std::to_string(failure_.line) + ":1: error: " + failure_.message + "\n"};
    }
    std::string out;
    size_t done = 0;
    for (const auto& [place, edit] : edits_) {
      if (place.first < done) continue;
      out.append(text_, done, place.first - done);
      out += edit.second;
      done = edit.first;
    }
    out.append(text_, done, std::string::npos);
    return {out, ""};
  }

 private:
  void fail(size_t line, const std::string& message) {
    if (failure_.message.empty()) failure_ = {line, message};
  }

  // Tokens of the shader's own text.
  void try_split() {
    bool own = true;
    size_t line = 1;
    for (size_t i = 0; i < text_.size();) {
      const char c = text_[i];
      if (c == '\n') {
        ++line;
        ++i;
        continue;
      }
      if (c == '#' && (i == 0 || text_[i - 1] == '\n')) {
        const size_t end = std::min(text_.find('\n', i), text_.size());
        const std::string marker = text_.substr(i, end - i);
        const size_t quote = marker.find('"');
        if (marker.size() > 2 && marker[1] == ' ' && std::isdigit(static_cast<unsigned char>(marker[2])) &&
            quote != std::string::npos) {
          const std::string file = marker.substr(quote + 1, marker.find('"', quote + 1) - quote - 1);
          line = std::strtoul(marker.c_str() + 2, nullptr, 10) - 1;
          own = file == "program_source";
          if (!own && file[0] != '<' && file.compare(0, headers_.size(), headers_) != 0) {
            fail(1, "the file " + file + " is not one of Metal's headers, and cannot be included");
            return;
          }
        }
        i = end;
        continue;
      }
      if (!own) {
        i = std::min(text_.find('\n', i), text_.size());
        continue;
      }
      if (std::isspace(static_cast<unsigned char>(c))) {
        ++i;
        continue;
      }
      const size_t begin = i;
      if (c == '"' || c == '\'') {
        for (++i; i < text_.size() && text_[i] != c && text_[i] != '\n'; ++i) {
          if (text_[i] == '\\' && i + 1 < text_.size() && text_[i + 1] != '\n') ++i;
        }
        if (i < text_.size() && text_[i] == c) ++i;  // one that does not end has its line for itself
      } else if (is_word(c)) {
        while (i < text_.size() && is_word(text_[i])) ++i;
      } else {
        ++i;
      }
      if (i > text_.size()) i = text_.size();
      tokens_.push_back({begin, i, line});
    }
  }

  std::string word(size_t token) const {
    if (token >= tokens_.size()) return "";
    return text_.substr(tokens_[token].begin, tokens_[token].end - tokens_[token].begin);
  }
  bool is(size_t token, const char* text) const { return token < tokens_.size() && word(token) == text; }
  bool next_to(size_t token) const {
    return token + 1 < tokens_.size() && tokens_[token].end == tokens_[token + 1].begin;
  }
  // Without last; on one line, whatever lines it is on.
  std::string between(size_t first, size_t last) const {
    std::string text;
    for (size_t i = first; i < last; ++i) {
      if (i > first && !next_to(i - 1)) text += ' ';
      text += word(i);
    }
    return text;
  }

  void replace(size_t token, const std::string& with) {
    edits_[{tokens_[token].begin, Edit::Replaced}] = {tokens_[token].end, with};
  }
  void erase(size_t first, size_t last) {  // without last
    for (size_t i = first; i < last; ++i) replace(i, std::string(tokens_[i].end - tokens_[i].begin, ' '));
  }
  void insert_after(size_t token, const std::string& what) {
    const size_t place = tokens_[token].end;
    auto& edit = edits_[{place, Edit::Inserted}];
    edit = {place, edit.second + what};
  }

  // The token after the one that closes what token opens.
  size_t after(size_t token) const {
    const std::string open = word(token), close = open == "(" ? ")" : open == "[" ? "]" : open == "{" ? "}" : ">";
    size_t depth = 0;
    for (size_t i = token; i < tokens_.size(); ++i) {
      if (open == "<" && (is(i, "(") || is(i, "["))) {
        i = after(i) - 1;
        continue;
      }
      if (is(i, open.c_str())) ++depth;
      if (is(i, close.c_str()) && --depth == 0) return i + 1;
    }
    return tokens_.size();
  }

  bool attributes_at(size_t token) const { return is(token, "[") && is(token + 1, "[") && next_to(token); }

  struct Attribute {
    std::string name, argument;
  };

  // Those of [[...]] at the token, which is taken out if all are Metal's.
  std::vector<Attribute> take_attributes(size_t token) {
    std::vector<Attribute> found;
    const size_t end = after(token);
    bool all = true;
    for (size_t i = token + 2; i + 2 < end;) {
      if (is(i, ",")) {
        ++i;
        continue;
      }
      Attribute a{word(i), ""};
      const size_t line = tokens_[i].line;
      ++i;
      if (is(i, "(")) {
        const size_t close = after(i);
        a.argument = between(i + 1, close - 1);
        i = close;
      }
      if (a.name == "function_constant" || a.name == "texture" || a.name == "sampler") {
        fail(line, "the attribute " + a.name + " is not supported");
      }
      all = all && (values().count(a.name) || ignored().count(a.name) || a.name == "buffer" || a.name == "threadgroup");
      found.push_back(a);
    }
    if (all) erase(token, end);
    return found;
  }

  void step() {
    if (attributes_at(at_)) {
      for (const Attribute& a : take_attributes(at_)) {
        if (a.name == "kernel") kernel_ = true;
        if (a.name == "host_name") host_name_ = a.argument;
      }
      at_ = after(at_);
      return;
    }
    const std::string w = word(at_);
    if (w == ";" || w == "{" || w == "}") {
      kernel_ = template_ = instantiated_ = false;
      host_name_.clear();
      start_ = at_ + 1;
    } else if (w == "asm" || w == "__asm" || w == "__asm__") {
      fail(tokens_[at_].line, "inline assembly is not part of Metal");
    } else if (w == "template") {
      if (is(at_ + 1, "<")) {
        template_ = true;
        at_ = after(at_ + 1);
        return;
      }
      instantiated_ = true;
    } else if (w == "kernel") {
      kernel_ = true;
      erase(at_, at_ + 1);
    } else if (kernel_ && w == "void") {
      function();
      return;
    } else if (kernel_ && instantiated_ && w == "decltype" && is(at_ + 1, "(")) {
      const size_t name = after(at_ + 1);
      const size_t end = name_end(name);
      if (is(end, ";")) entry(end, name, end);
      at_ = end;
      return;
    } else if (w == "threadgroup") {
      shared_memory();
    } else if (w == "threadgroup_barrier" || w.compare(0, 9, "simdgroup") == 0 || w.compare(0, 5, "simd_") == 0) {
      waits_ = true;
    }
    ++at_;
  }

  // Behind a name and its template arguments.
  size_t name_end(size_t token) const {
    while (token < tokens_.size() && !is(token, "(") && !is(token, ";") && !is(token, "{")) {
      token = is(token, "<") ? after(token) : token + 1;
    }
    return token;
  }

  // A kernel's declaration: at void.
  void function() {
    const size_t line = tokens_[at_].line;
    size_t name = at_ + 1;
    while (attributes_at(name)) name = after(name);
    const size_t open = name_end(name);
    if (!is(open, "(")) {
      at_ = open;
      return;
    }
    const size_t close = after(open);
    std::vector<Parameter> parameters;
    for (size_t i = open + 1; i < close - 1;) i = parameter(i, close - 1, parameters);
    at_ = close;
    while (attributes_at(at_)) {
      take_attributes(at_);
      at_ = after(at_);
    }
    const std::string base = word(name);
    if (instantiated_) {
      if (!definitions_.count(base)) {
        fail(line, "the kernel " + base + " is instantiated before it is defined");
      } else if (is(at_, ";")) {
        entry(at_, name, open);
      }
      return;
    }
    if (!is(at_, "{")) return;
    definitions_[base] = parameters;
    if (!template_) {
      if (host_name_.empty()) host_name_ = "\"" + base + "\"";
      entry(after(at_) - 1, name, open);
    }
  }

  // One parameter, at the token; returns where the next one is.
  size_t parameter(size_t token, size_t end, std::vector<Parameter>& all) {
    Parameter p;
    bool shared = false;
    for (; token < end && !is(token, ",");) {
      if (attributes_at(token)) {
        for (const Attribute& a : take_attributes(token)) {
          if (a.name == "buffer" || a.name == "threadgroup") {
            p.attribute = "::mpsforge::msl::" + a.name + "<(" + a.argument + ")>";
          } else if (values().count(a.name)) {
            p.attribute = "::mpsforge::msl::" + a.name;
          } else {
            fail(tokens_[token].line, "the attribute " + a.name + " of a kernel's parameter is not supported");
          }
        }
        token = after(token);
        continue;
      }
      const std::string w = word(token);
      if (w == "threadgroup") {
        shared = true;
        erase(token, token + 1);
      }
      if (w == "<" || w == "(" || w == "[") {
        token = after(token);
        continue;
      }
      if (std::isalpha(static_cast<unsigned char>(w[0])) || w[0] == '_') p.name = w;
      ++token;
    }
    if (p.name == "void" && all.empty() && token == end) return end;
    if (p.attribute.empty())
      p.attribute = shared ? "::mpsforge::msl::next_threadgroup" : "::mpsforge::msl::next_buffer";
    all.push_back(p);
    return token < end ? token + 1 : end;
  }

  // The entry of the kernel whose name is from first to last, behind the token.
  void entry(size_t token, size_t first, size_t last) {
    const std::vector<Parameter>& parameters = definitions_[word(first)];
    const std::string name = between(first, last), number = std::to_string(count_++);
    std::string attributes, names;
    for (const Parameter& p : parameters) {
      attributes += ", " + p.attribute;
      names += "\"" + p.name + "\", ";
    }
    if (host_name_.empty()) host_name_ = "\"" + name + "\"";
    // Whether a kernel waits is not known from its name alone: one of its functions may. So all do, if one does.
    insert_after(token, " static const char* const mpsforge_names_" + number + "[] = {" + names +
                            "\"\"}; static const ::mpsforge::msl::Registered<&" + name + attributes +
                            "> mpsforge_entry_" + number + "(" + host_name_ + ", mpsforge_waits, mpsforge_names_" +
                            number + ");");
  }

  // A variable in a function, unless it is a pointer or a reference.
  void shared_memory() {
    erase(at_, at_ + 1);
    const bool starts = at_ == start_ || (at_ == start_ + 1 && is(start_, "static"));
    if (!starts) return;
    size_t i = at_ + 1;
    for (; i < tokens_.size() && !is(i, ";") && !is(i, "[") && !is(i, "=") && !is(i, "(") && !is(i, "{"); ++i) {
      if (is(i, "*") || is(i, "&")) return;
      if (is(i, "<")) i = after(i) - 1;
    }
    if (is(i, "(") || is(i, "{")) return;
    replace(at_, at_ == start_ ? "static thread_local" : "thread_local");
  }

 public:
  bool waits() const { return waits_; }

 private:
  const std::string& text_;
  const std::string& headers_;
  std::vector<Token> tokens_;
  // What is inserted behind a token comes before what the next one is replaced by.
  enum class Edit { Inserted, Replaced };
  // By where they begin: where they end, and what is there then.
  std::map<std::pair<size_t, Edit>, std::pair<size_t, std::string>> edits_;
  std::map<std::string, std::vector<Parameter>> definitions_;
  Failure failure_{0, ""};
  size_t at_ = 0, start_ = 0, count_ = 0;
  // Of the declaration that begins at start_.
  bool kernel_ = false, template_ = false, instantiated_ = false;
  bool waits_ = false;
  std::string host_name_;  // an expression
};

}  // namespace

Rewritten rewrite(const std::string& preprocessed, const std::string& headers) {
  Rewriter rewriter(preprocessed, headers);
  Rewritten result = rewriter.run();
  if (result.error.empty()) {
    result.text = std::string("static constexpr bool mpsforge_waits = ") + (rewriter.waits() ? "true" : "false") +
                  ";\n" + result.text;
  }
  return result;
}

}  // namespace mpsforge::msl
