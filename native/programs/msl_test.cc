// Tests how a shader's source becomes C++ (native/msl/rewrite.h). What the compiler makes of it, host builds test.
#include <algorithm>
#include <cstdio>
#include <string>

#include "msl/rewrite.h"
#include "programs/scenarios.h"

namespace {

mpsforge::msl::Rewritten rewritten(const std::string& source) {
  return mpsforge::msl::rewrite("# 1 \"program_source\"\n" + source, "/headers");
}

bool has(const mpsforge::msl::Rewritten& result, const std::string& text) {
  return result.error.empty() && result.text.find(text) != std::string::npos;
}

SCENARIO(attributes_become_arguments_of_the_entry) {
  const auto result = rewritten(
      "kernel void f(device float* a [[buffer(N + 1)]], threadgroup int* b [[threadgroup(0)]], constant int& c, "
      "threadgroup float* d, uint3 i [[thread_position_in_grid]]) {}");
  CHECK(has(result,
            "Registered<&f, ::mpsforge::msl::buffer<(N + 1)>, ::mpsforge::msl::threadgroup<(0)>, "
            "::mpsforge::msl::next_buffer, ::mpsforge::msl::next_threadgroup, "
            "::mpsforge::msl::thread_position_in_grid>"));
  CHECK(has(result, "{\"a\", \"b\", \"c\", \"d\", \"i\", \"\"}"));
  CHECK(!has(result, "[["));
}

SCENARIO(a_parameter_may_have_its_attribute_s_name) {
  CHECK(has(rewritten("kernel void f(uint thread_position_in_grid [[thread_position_in_grid]]) {}"),
            "uint thread_position_in_grid "));
}

SCENARIO(a_template_has_an_entry_for_each_instantiation) {
  const std::string f = "template <typename T, int N> kernel void f(device T* a [[buffer(3)]]) { if (a) { } }\n";
  CHECK(!has(rewritten(f), "Registered"));
  CHECK(has(rewritten(f + "template [[host_name(\"f_\" \"x\")]] kernel void f<float, 2>(device float*);"),
            "Registered<&f<float, 2>, ::mpsforge::msl::buffer<(3)>> mpsforge_entry_0(\"f_\" \"x\", "));
  CHECK(has(rewritten(f + "template [[host_name(\"g\")]] [[kernel]] decltype(f<half, 2>) f<half, 2>;"),
            "Registered<&f<half, 2>, ::mpsforge::msl::buffer<(3)>> mpsforge_entry_0(\"g\", "));
}

SCENARIO(lines_stay) {
  const std::string source = "kernel\nvoid f(device float* a\n [[buffer(0)]]) {\n}\nint after;";
  const std::string text = rewritten(source).text;
  const size_t start = text.find("# 1 ");
  size_t lines = 0, wanted = 1;
  for (const char c : text.substr(start)) lines += c == '\n';
  for (const char c : source) wanted += c == '\n';
  CHECK(lines == wanted);
}

size_t lines_of(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

SCENARIO(a_name_on_several_lines_is_on_one_in_its_entry) {
  const std::string source =
      "template <typename T, int N> kernel void f(device T* a) {}\ntemplate kernel void f<float,\n  2>(device "
      "float*);\n";
  CHECK(has(rewritten(source), "Registered<&f<float, 2>"));
  CHECK(lines_of(rewritten(source).text) == lines_of(source) + 2);
}

SCENARIO(a_literal_without_end_keeps_its_line) {
  const std::string source = "[[host_name(\"f)]]\n[[host_name(\"f\\\n)]]\n";
  CHECK(lines_of(rewritten(source).text) == lines_of(source) + 2);
}

SCENARIO(an_entry_stays_where_the_next_word_is_taken_out) {
  const auto result = rewritten("kernel void f() {}kernel void g() {}");
  CHECK(has(result, "Registered<&f>"));
  CHECK(has(result, "Registered<&g>"));
}

SCENARIO(a_line_may_have_any_number) {
  CHECK(has(rewritten("# 99999999999999999999 \"program_source\"\nint a;"), "int a;"));
}

SCENARIO(threadgroup_memory_is_shared) {
  CHECK(has(rewritten("void f() { threadgroup float a[4]; }"), "{ static thread_local float a[4];"));
  CHECK(has(rewritten("void f() { threadgroup float* a = b; }"), "{             float* a = b;"));
  CHECK(has(rewritten("void f(threadgroup float* a) {}"), "void f(            float* a)"));
}

SCENARIO(comments_and_text_are_no_code) {
  CHECK(!has(rewritten("const char* a = \"kernel void f() {}\";"), "Registered"));
  CHECK(has(rewritten("int a = b[c[0]];"), "int a = b[c[0]];"));
}

SCENARIO(kernels_wait_where_a_barrier_is) {
  CHECK(has(rewritten("kernel void f() { threadgroup_barrier(x); }"), "mpsforge_waits = true"));
  CHECK(has(rewritten("kernel void f() {}"), "mpsforge_waits = false"));
}

SCENARIO(what_is_refused) {
  const auto problem = [](const std::string& source) { return rewritten(source).error; };
  CHECK(problem("void f() {\n  asm(\"nop\");\n}") ==
        "program_source:2:1: error: inline assembly is not part of Metal\n");
  CHECK(problem("# 1 \"/etc/passwd\" 1\nx\n").find("/etc/passwd is not one of Metal's headers") != std::string::npos);
  CHECK(problem("# 1 \"/headers/metal_stdlib\" 1\nx\n").empty());
  CHECK(problem("kernel void f(texture2d<float> t [[texture(0)]]) {}").find("texture is not supported") !=
        std::string::npos);
}

}  // namespace

int main() { return mpsforge::run_scenarios(); }
