// The warnings of a pool, for people.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace mpsforge::pool {

class Warnings {
 public:
  void add(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push_back(text);
  }
  // Adds it unless it was added before.
  void add_once(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& earlier : texts_) {
      if (earlier == text) return;
    }
    texts_.push_back(text);
  }
  std::vector<std::string> all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return texts_;
  }

 private:
  std::mutex mutex_;  // nothing is called under it
  std::vector<std::string> texts_;
};

}  // namespace mpsforge::pool
