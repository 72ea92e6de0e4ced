#include "configuration.h"

#include <cerrno>
#include <cstdlib>
#include <map>
#include <sstream>

namespace mpsforge::pool {
namespace {

// Whether text is a whole number in low..high: digits, with one '-' before them if negative, and nothing else.
bool whole_number(const std::string& text, int64_t low, int64_t high, int64_t* value) {
  const size_t sign = text.rfind('-', 0) == 0 ? 1 : 0;
  if (text.size() == sign || text.find_first_not_of("0123456789", sign) != std::string::npos) return false;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), nullptr, 10);
  if (errno != 0 || number < low || number > high) return false;
  *value = number;
  return true;
}

class Reader {
 public:
  Reader(const char* lines, std::vector<std::string>* warnings) : warnings_(*warnings) {
    std::istringstream text(lines ? lines : "");
    for (std::string line; std::getline(text, line);) {
      const size_t equals = line.find('=');
      if (equals != std::string::npos) values_[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }

  int64_t number(const char* name, int64_t low, int64_t high, int64_t otherwise, const char* range) {
    const auto entry = values_.find(name);
    int64_t value = otherwise;
    if (entry != values_.end() && !whole_number(entry->second, low, high, &value)) {
      warn(*entry, range, std::to_string(otherwise));
    }
    return value;
  }

  bool flag(const char* name, bool otherwise) { return number(name, 0, 1, otherwise, "neither 0 nor 1") != 0; }

  Exhausted exhausted(int64_t* wait_ms) {
    const auto entry = values_.find("PYTORCH_MPS_STREAM_POOL_EXHAUSTED");
    if (entry == values_.end() || entry->second == "share") return Exhausted::Share;
    if (entry->second == "wait") return Exhausted::Wait;
    if (entry->second.rfind("wait:", 0) == 0 && whole_number(entry->second.substr(5), 0, INT64_MAX, wait_ms)) {
      return Exhausted::Wait;
    }
    if (entry->second == "error") return Exhausted::Error;
    warn(*entry, "none of share, wait, wait:500, error", "share");
    return Exhausted::Share;
  }

 private:
  void warn(const std::pair<const std::string, std::string>& entry, const char* fault, const std::string& otherwise) {
    warnings_.push_back(entry.first + "=" + entry.second + " is " + fault + "; using " + otherwise);
  }

  std::map<std::string, std::string> values_;
  std::vector<std::string>& warnings_;
};

}  // namespace

Configuration parse_environment(const char* lines, std::vector<std::string>* warnings) {
  Reader reader(lines, warnings);
  Configuration result;
  // Rule 7.
  result.worker_streams =
      static_cast<uint32_t>(reader.number("PYTORCH_MPS_STREAM_POOL_SIZE", 2, 1024, 32, "not in 2..1024") - 1);
  // Rule 8.
  result.exhausted = reader.exhausted(&result.wait_ms);
  // Rule 16.
  result.stream_per_thread = reader.flag("PYTORCH_MPS_STREAM_PER_THREAD", true);
  // Rule 19.
  result.graph_cache_size =
      static_cast<size_t>(reader.number("PYTORCH_MPS_GRAPH_CACHE_SIZE", 0, INT64_MAX, 512, "not 0 or more"));
  return result;
}

}  // namespace mpsforge::pool
