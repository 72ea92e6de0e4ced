// Foundation's formats: printf's conversions, and %@ for objects.
#include <cstdio>
#include <cstring>
#include <vector>

#include "../engine.h"
#include "support.h"

namespace mpsforge::objc {
namespace {

// Formats one argument by printf itself.
template <typename T>
void append(std::string& to, const std::string& conversion, T value) {
  const int needed = std::snprintf(nullptr, 0, conversion.c_str(), value);
  if (needed < 0) fail("a format's conversion %s is refused", conversion.c_str());
  std::vector<char> buffer(static_cast<size_t>(needed) + 1);
  std::snprintf(buffer.data(), buffer.size(), conversion.c_str(), value);
  to.append(buffer.data(), static_cast<size_t>(needed));
}

struct Arguments {
  va_list list;
};

// The length letters that printf knows; q is Foundation's own for ll.
std::string read_length(const char*& at) {
  std::string length;
  while (*at && std::strchr("hlqzjtL", *at)) {
    if (*at == 'q') {
      length += "ll";
    } else {
      length += *at;
    }
    ++at;
  }
  return length;
}

void append_integer(std::string& to, const std::string& conversion, const std::string& length, Arguments& arguments) {
  if (length == "l" || length == "z" || length == "t" || length == "j") {
    append(to, conversion, va_arg(arguments.list, long));
  } else if (length == "ll") {
    append(to, conversion, va_arg(arguments.list, long long));
  } else {
    append(to, conversion, va_arg(arguments.list, int));
  }
}

void append_text(std::string& to, const char* text) { to += text ? text : "(null)"; }

void append_conversion(std::string& to, const char*& at, Arguments& arguments) {
  std::string conversion = "%";
  while (*at && std::strchr("-+ #0123456789.'*", *at)) {
    if (*at == '*') {
      conversion += std::to_string(va_arg(arguments.list, int));
    } else {
      conversion += *at;
    }
    ++at;
  }
  const std::string length = read_length(at);
  const char letter = *at ? *at++ : '\0';
  switch (letter) {
    case '%':
      to += '%';
      return;
    case '@': {
      id object = va_arg(arguments.list, id);
      append_text(to, object ? [[object description] UTF8String] : nullptr);
      return;
    }
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'c':
      append_integer(to, conversion + length + letter, length, arguments);
      return;
    case 'D':
    case 'U':
      append_integer(to, conversion + "l" + static_cast<char>(letter - 'A' + 'a'), "l", arguments);
      return;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      if (length == "L") {
        append(to, conversion + length + letter, va_arg(arguments.list, long double));
      } else {
        append(to, conversion + letter, va_arg(arguments.list, double));
      }
      return;
    case 's': {
      const char* text = va_arg(arguments.list, const char*);
      append(to, conversion + 's', text ? text : "(null)");
      return;
    }
    case 'p':
      append(to, "%p", va_arg(arguments.list, void*));
      return;
    default:
      fail("a format has the conversion %s%s%c, which is not known", conversion.c_str(), length.c_str(), letter);
  }
}

}  // namespace

std::string format(NSString* format, va_list list) {
  Arguments arguments;
  va_copy(arguments.list, list);
  std::string result;
  for (const char* at = [format UTF8String]; *at;) {
    const char* percent = std::strchr(at, '%');
    if (!percent) {
      result += at;
      break;
    }
    result.append(at, percent);
    at = percent + 1;
    append_conversion(result, at, arguments);
  }
  va_end(arguments.list);
  return result;
}

}  // namespace mpsforge::objc

extern "C" {

void NSLogv(NSString* format, va_list arguments) {
  const std::string line = mpsforge::objc::format(format, arguments) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void NSLog(NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  NSLogv(format, arguments);
  va_end(arguments);
}

}  // extern "C"
