// Tests what comes of shaders that are source at run time: compiles some with the toolchain that the first argument
// names, and runs their kernels without a Metal around them.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "msl/compile.h"
#include "programs/scenarios.h"
#include "shaders/run.h"

using namespace mpsforge::shaders;

namespace {

constexpr uint32_t kThreads = 64, kGroup = 32;

mpsforge::msl::Toolchain toolchain;
std::vector<Refused> refused;

mpsforge::msl::Compiled compile(const std::string& source) {
  return mpsforge::msl::compile(toolchain, "#include <metal_stdlib>\nusing namespace metal;\n" + source, {});
}

struct Loaded {
  const Library* library = nullptr;
  decltype(&mpsforge_shaders_run) run = nullptr;
};

Loaded load(const std::string& source) {
  const auto made = compile(source);
  if (!made.error.empty()) std::printf("%s\n", made.error.c_str());
  void* loaded = dlopen(made.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    std::printf("%s\n", dlerror());
    std::exit(1);
  }
  const auto table = reinterpret_cast<decltype(&mpsforge_shaders)>(dlsym(loaded, "mpsforge_shaders"));
  return {table()->libraries, reinterpret_cast<decltype(&mpsforge_shaders_run)>(dlsym(loaded, "mpsforge_shaders_run"))};
}

// Runs the source's first kernel, whose first argument is a float for each thread, 0.5 at first, and the second, if
// there is one, the number 10.
std::vector<float> run(const std::string& source, bool races = false) {
  const Loaded loaded = load(source);
  const Kernel& kernel = loaded.library->kernels[0];
  std::vector<float> memory(kThreads, 0.5f);
  float ten = 10;
  static Run run;
  run.slot_count = 1;
  run.check_races = races;
  for (uint32_t i = 0; i < kernel.argument_count; ++i) {
    if (kernel.arguments[i].kind == ArgumentKind::Position) continue;
    const uint32_t slot = run.slot_count++;
    const auto address = slot == 1 ? reinterpret_cast<uint64_t>(memory.data()) : reinterpret_cast<uint64_t>(&ten);
    run.slots[slot] = {
        uint64_t{slot} << kTagShift | address, slot == 1 ? kThreads * sizeof(float) : sizeof ten, {}, {}};
    run.arguments[i] = run.slots[slot].base;
  }
  for (int d = 0; d < 3; ++d) {
    run.threads[d] = d == 0 ? kThreads : 1;
    run.group[d] = d == 0 ? kGroup : 1;
  }
  refused.clear();
  run.resolve = [](void*, uint64_t) -> uint32_t { return 0; };
  run.refuse = [](void*, const Refused& what) { refused.push_back(what); };
  loaded.run(&kernel, &run);
  return memory;
}

SCENARIO(arguments_come_from_the_declaration) {
  const Loaded loaded = load(
      "kernel void f(constant half2& a, device float4* b [[buffer(0)]], device const uchar* c, threadgroup int* d, "
      "ushort2 e [[thread_position_in_threadgroup]]) {}");
  const Kernel& kernel = loaded.library->kernels[0];
  const auto is = [&](int i, ArgumentKind kind, uint32_t index, uint32_t access, uint32_t size, const char* type,
                      const char* name) {
    const Argument& a = kernel.arguments[i];
    return a.kind == kind && a.index == index && a.access == access && a.size == size && !std::strcmp(a.type, type) &&
           !std::strcmp(a.name, name);
  };
  CHECK(kernel.argument_count == 5);
  CHECK(is(0, ArgumentKind::Buffer, 1, kRead, 4, "half2", "a"));
  CHECK(is(1, ArgumentKind::Buffer, 0, kRead | kWrite, 16, "float4", "b"));
  CHECK(is(2, ArgumentKind::Buffer, 2, kRead, 1, "uchar", "c"));
  CHECK(is(3, ArgumentKind::Threadgroup, 0, kRead | kWrite, 4, "int", "d"));
  CHECK(kernel.arguments[4].kind == ArgumentKind::Position);
}

SCENARIO(vectors_and_numbers) {
  const auto out =
      run("constant float table[4] = {1, 2, 3, 4};\n"
          "kernel void f(device float* a, constant float& ten, uint i [[thread_position_in_grid]]) {\n"
          "  float4 v = float4(1, 2, float2(3, 4));\n  v.xy += v.zw * ten;\n"
          "  a[i] = v.yx[i % 2] + table[i % 4] + half(0.25) + select(0.0, 1000.0, i == 5) + max(int2(i, 1), "
          "int2(0)).x;\n}");
  CHECK(out[0] == 42 + 1 + 0.25f);
  CHECK(out[5] == 31 + 2 + 0.25f + 1000 + 5);
  const auto turns =
      run("kernel void f(device float* a) { a[0] = sinpi(-3.0); a[1] = cospi(2.5); a[2] = sinpi(0.5); }");
  CHECK(turns[0] == 0 && turns[1] == 0 && turns[2] == 1);
  CHECK(refused.empty());
}

SCENARIO(threads_share_threadgroup_memory) {
  const auto out = run(
      "kernel void f(device float* a, uint l [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]]) {\n"
      "  threadgroup float all[32];\n  all[l] = i;\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
      "  a[i] = all[31 - l] + 100 * simd_sum(1);\n}");
  CHECK(out[0] == 31 + 3200 && out[40] == 55 + 3200);
  CHECK(refused.empty());
}

// The product of a matrix with one that has 2 on its diagonal, and 1 added to each element.
SCENARIO(simd_groups_multiply_matrices) {
  const auto out = run(
      "kernel void f(device float* a, uint i [[thread_position_in_grid]]) {\n"
      "  if (i >= 32) return;\n"
      "  threadgroup float same[64];\n  simdgroup_float8x8 x, y(2), z = make_filled_simdgroup_matrix<float, 8, 8>(1);\n"
      "  same[i] = 10 * i;\n  same[i + 32] = 0;\n  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
      "  simdgroup_load(x, same, 4, ulong2(1, 2), true);\n  simdgroup_multiply_accumulate(z, x, y, z);\n"
      "  simdgroup_store(z, a);\n}",
      true);
  CHECK(refused.empty());
  // Transposed, an element (x, y) is at (x + 1) * 4 + y + 2.
  CHECK(out[0] == 121 && out[1] == 201 && out[8] == 141 && out[63] == 1);
}

SCENARIO(atomics_count_all_threads) {
  const auto out =
      run("kernel void f(device atomic_float* a) { atomic_fetch_add_explicit(a, 1, memory_order_relaxed); }");
  CHECK(out[0] == 64.5f && out[1] == 0.5f);
}

SCENARIO(an_access_outside_is_found_and_ends_the_thread) {
  const auto out =
      run("kernel void f(device float* a, uint i [[thread_position_in_grid]]) { a[i + 1] = 7; a[i] = 8; }");
  CHECK(refused.size() == 1 && refused[0].thread[0] == 63 && refused[0].offset == 256 && refused[0].access == kWrite);
  CHECK(out[62] == 8 && out[63] == 7);
}

SCENARIO(a_read_outside_is_found_and_goes_on) {
  const auto out =
      run("kernel void f(device float* a, uint i [[thread_position_in_grid]]) { a[i] = isnan(a[i + 64]) ? 9 : 8; }");
  CHECK(refused.size() == 64 && refused[0].access == kRead);
  CHECK(out[0] >= 8 && out[63] >= 8);
  const auto unmapped = run("kernel void f(device float* a) { a[0] = *(a + (1ul << 46) / 4); }");
  CHECK(refused.size() == 64);
  CHECK(unmapped[0] == 0.5f);
}

SCENARIO(an_index_beyond_an_array_is_found) {
  run("kernel void f(device float* a, uint i [[thread_position_in_grid]]) { float l[4] = {0, 1, 2, 3}; a[i] = l[i / "
      "15]; }");
  CHECK(refused.size() == 4);  // 60 to 63
}

// Whether threads of the kernel with this body race; each has the index l in its threadgroup and i in the grid.
bool races(const std::string& body) {
  run("kernel void f(device float* a, uint l [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]]) {" +
          body + "}",
      true);
  for (const Refused& what : refused) CHECK(what.problem == Problem::Race);
  return !refused.empty();
}

SCENARIO(races_of_threads_are_found) {
  CHECK(!races("a[i] = i;"));
  CHECK(races("a[l] = i;"));
  CHECK(races("a[i] = a[(i + 1) % 64];"));
  const std::string share = "threadgroup float all[32]; all[l] = i;", use = "a[i] = all[31 - l];";
  CHECK(races(share + use));
  CHECK(!races(share + "threadgroup_barrier(mem_flags::mem_threadgroup);" + use));
  CHECK(races(share + "threadgroup_barrier(mem_flags::mem_device);" + use));
  CHECK(!races(share + "simdgroup_barrier(mem_flags::mem_threadgroup);" + use));  // the threadgroup is one SIMD group
  const std::string add = "atomic_fetch_add_explicit((device atomic_float*)a, 1, memory_order_relaxed);";
  CHECK(!races(add));
  CHECK(!races(add + "atomic_load_explicit((device atomic_float*)a, memory_order_relaxed);"));
  CHECK(races(add + "a[i] = 0;"));
}

SCENARIO(templates_are_named_by_host_name) {
  const Loaded loaded = load(
      "template <typename T> kernel void f(device T* a) { *a = T(1); }\n"
      "#define MAKE(T) template [[host_name(\"f_\" #T)]] kernel void f<T>(device T*);\n"
      "MAKE(half)\nMAKE(bfloat)\ntemplate [[host_name(\"f_int\")]] [[kernel]] decltype(f<int>) f<int>;");
  CHECK(loaded.library->kernel_count == 3);
  CHECK(!std::strcmp(loaded.library->kernels[1].name, "f_bfloat") && loaded.library->kernels[1].arguments[0].size == 2);
}

SCENARIO(errors_have_the_source_s_lines) {
  CHECK(
      compile("kernel void f(device float* a) {\n  *a = b;\n}").error.find("program_source:4:8: error: use of undec") ==
      0);
  CHECK(compile("#include \"/dev/null\"\n").error.find("/dev/null is not one of Metal's headers") != std::string::npos);
  CHECK(compile("constant char a[] = {\n#em\\\nbed \"/etc/passwd\"\n};").error.find("#embed is not part") !=
        std::string::npos);
}

SCENARIO(a_library_is_compiled_once) {
  const std::string source = "kernel void once(device float* a) {}";
  CHECK(compile(source).library == compile(source).library);
  CHECK(compile(source).library != compile(source + "\n").library);
}

SCENARIO(a_library_that_is_used_is_marked) {
  const std::string source = "kernel void marked(device float* a) {}", library = compile(source).library;
  const std::string folder = library.substr(0, library.rfind('/'));
  const timeval long_ago[2] = {};
  CHECK(utimes(folder.c_str(), long_ago) == 0);
  compile(source);
  struct stat found{};
  CHECK(stat(folder.c_str(), &found) == 0 && found.st_mtime > 0);
}

}  // namespace

int main(int count, char** args) {
  const std::string problem = count == 2 ? toolchain.read(args[1]) : "name the file of a toolchain";
  if (!problem.empty()) {
    std::printf("%s\n", problem.c_str());
    return 2;
  }
  return mpsforge::run_scenarios();
}
