// Verbs over a stream pool. STREAM is a number, a name from use_pooled, or "current".
//   tensor T ELEMENTS [cpu] | free T | record_stream T STREAM
//   set T VALUE | copy_to TO FROM | add_to TO A B | multiply_to TO A B | scale_to TO A VALUE | increment T VALUE
//     each may end in: kernel | blit | matrix KEY | graph KEY
//   guard BLOCK [reads T...] [writes T...]      an operator whose kernel is the block, on no queue
//   fallback BLOCK [reads T...] [writes T...]   the same by the CPU's kernel, in Python
//   python BLOCK         a kernel in Python, inside a guard or not
//   stall STREAM E N     the stream's work waits until the shared event has the value
//   read T [= VALUE]     every element; -2147483648 if they differ
//   write T VALUE
//   host H ELEMENTS | copy_to_host H T | host.read H [= VALUE]    memory of the CPU, a copy that does not block, its
//   value now current [= N] | working [= N] | has_stream [= 0|1] | release_slot | end_thread use STREAM | use_pooled
//   NAME | engine_use STREAM | restore | reset    engine_use: as autograd's engine sets it synchronize STREAM |
//   synchronize_device | commit_stream STREAM | query STREAM [= 0|1] on_queue STREAM BLOCK | on_stream_completed STREAM
//   BLOCK | take_command_buffer STREAM | take_encoder STREAM event E [timing] | event.record E STREAM | event.wait E
//   STREAM | event.query E [= 0|1] | event.synchronize E | event.elapsed E F [= 1]     1 if it is a time that is not
//   negative empty_cache | profiler on|off | warnings [= N] | warned TEXT | commits STREAM [= N] | statistic NAME [= N]
//   fails TEXT VERB ...     the verb must end in an error that holds TEXT
#include <cstring>
#include <limits>

#include "world.h"

namespace mpsforge::script {

namespace {

constexpr const char* kTensor = "tensor";
constexpr const char* kEvent = "event";
constexpr const char* kHost = "host";

// What PyTorch would raise in Python.
class Raised : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Tensor {
  mpsforge_pool_tensor* own;
  size_t elements;
};

void check(Context& c, int result) {
  if (result != 0) throw Raised(c.world.pool_api().last_error());
}

Tensor& tensor(Context& c, Arguments& a) { return *c.world.get<Tensor>(a.word(), kTensor); }

mpsforge_pool_event* event(Context& c, Arguments& a) { return c.world.get<mpsforge_pool_event>(a.word(), kEvent); }

uint32_t stream(Context& c, Arguments& a) {
  const std::string& word = a.word();
  if (word == "current") return c.world.pool_api().current_stream(c.world.pool());
  if (word[0] >= '0' && word[0] <= '9') return static_cast<uint32_t>(std::stoul(word));
  return static_cast<uint32_t>(c.world.variable(word));
}

void make_tensor(Context& c, Arguments& a) {
  const std::string& name = a.word();
  const size_t elements = a.number();
  const bool for_cpu = a.more() && a.word() == "cpu";
  auto* made = c.world.pool_api().empty(c.world.pool(), elements, for_cpu);
  if (!made) throw Raised(c.world.pool_api().last_error());
  c.world.put(name, {kTensor, new Tensor{made, elements}, [](World& world, void* pointer) {
                       const std::unique_ptr<Tensor> own(static_cast<Tensor*>(pointer));
                       world.pool_api().free_tensor(own->own);
                     }});
}

void free_tensor(Context& c, Arguments& a) {
  const Object object = c.world.take(a.word());
  if (std::strcmp(object.type, kTensor) != 0) throw Wrong("not a tensor");
  object.release(c.world, object.pointer);
}

// Reads the path at the end of a line and does the operator.
void operate(Context& c, Arguments& a, const char* name, std::vector<mpsforge_pool_tensor*> inputs,
             mpsforge_pool_tensor* output, int64_t value) {
  mpsforge_pool_operator op{};
  if (a.more()) {
    const std::string& path = a.word();
    const std::map<std::string, uint32_t> paths = {{"kernel", MPSFORGE_POOL_KERNEL},
                                                   {"matrix", MPSFORGE_POOL_MATRIX},
                                                   {"graph", MPSFORGE_POOL_GRAPH},
                                                   {"blit", MPSFORGE_POOL_BLIT}};
    const auto found = paths.find(path);
    if (found == paths.end()) throw Wrong("no path " + path);
    op.path = found->second;
    if (op.path == MPSFORGE_POOL_MATRIX || op.path == MPSFORGE_POOL_GRAPH) op.key = static_cast<uint32_t>(a.number());
  }
  op.name = name;
  op.inputs = inputs.data();
  op.input_count = inputs.size();
  op.output = output;
  op.value = static_cast<int32_t>(value);
  check(c, c.world.pool_api().operate(c.world.pool(), &op));
}

std::vector<mpsforge_pool_use> uses(Context& c, Arguments& a) {
  std::vector<mpsforge_pool_use> all;
  for (int writes = -1; a.more();) {
    const std::string& word = a.word();
    if (word == "reads" || word == "writes") {
      writes = word == "writes";
    } else if (writes < 0) {
      throw Wrong("reads or writes, not " + word);
    } else {
      all.push_back({c.world.get<Tensor>(word, kTensor)->own, writes});
    }
  }
  return all;
}

// As Python does: with the GIL, which the thread may have let go.
void run_python(void* callback) {
  auto* own = static_cast<Callback*>(callback);
  const bool took = own->world.gil_take();
  run_callback(callback);
  if (took) own->world.gil_let_go();
}

void set(Context& c, Arguments& a) {
  auto* output = tensor(c, a).own;
  const int64_t value = a.integer();
  operate(c, a, "fill", {}, output, value);
}

void copy_to(Context& c, Arguments& a) {
  auto* output = tensor(c, a).own;
  auto* input = tensor(c, a).own;
  operate(c, a, "copy", {input}, output, 0);
}

void two_inputs(Context& c, Arguments& a, const char* name) {
  auto* output = tensor(c, a).own;
  auto* first = tensor(c, a).own;
  auto* second = tensor(c, a).own;
  operate(c, a, name, {first, second}, output, 0);
}

void scale_to(Context& c, Arguments& a) {
  auto* output = tensor(c, a).own;
  auto* input = tensor(c, a).own;
  const int64_t value = a.integer();
  operate(c, a, "scale", {input}, output, value);
}

void increment(Context& c, Arguments& a) {
  auto* output = tensor(c, a).own;
  const int64_t value = a.integer();
  operate(c, a, "increment", {}, output, value);
}

void observe(Context& c, Arguments& a, const std::vector<int32_t>& elements) {
  int64_t found = elements[0];
  for (const int32_t element : elements) {
    if (element != found) found = std::numeric_limits<int32_t>::min();
  }
  c.observe(a, found);
}

void read(Context& c, Arguments& a) {
  const Tensor& from = tensor(c, a);
  std::vector<int32_t> elements(from.elements);
  check(c, c.world.pool_api().read(from.own, elements.data()));
  observe(c, a, elements);
}

struct Host {
  mpsforge_pool_host* own;
  size_t elements;
};

void make_host(Context& c, Arguments& a) {
  const std::string& name = a.word();
  const size_t elements = a.number();
  auto* made = c.world.pool_api().host_create(c.world.pool(), elements);
  if (!made) throw Raised(c.world.pool_api().last_error());
  c.world.put(name, {kHost, new Host{made, elements}, [](World& world, void* pointer) {
                       const std::unique_ptr<Host> own(static_cast<Host*>(pointer));
                       world.pool_api().host_destroy(own->own);
                     }});
}

void copy_to_host(Context& c, Arguments& a) {
  auto* to = c.world.get<Host>(a.word(), kHost)->own;
  check(c, c.world.pool_api().copy_to_host(tensor(c, a).own, to));
}

void read_host(Context& c, Arguments& a) {
  const Host& from = *c.world.get<Host>(a.word(), kHost);
  std::vector<int32_t> elements(from.elements);
  check(c, c.world.pool_api().host_read(from.own, elements.data()));
  observe(c, a, elements);
}

void write(Context& c, Arguments& a) {
  const Tensor& to = tensor(c, a);
  const std::vector<int32_t> elements(to.elements, static_cast<int32_t>(a.integer()));
  check(c, c.world.pool_api().write(to.own, elements.data()));
}

void use(Context& c, uint32_t stream, int by_program) {
  uint32_t token = 0;
  check(c, c.world.pool_api().set_current_stream(c.world.pool(), stream, by_program, &token));
  c.overrides.emplace_back(token, by_program);
}

void use_pooled(Context& c, Arguments& a) {
  const uint32_t taken = c.world.pool_api().stream_from_pool(c.world.pool());
  c.world.variable(a.word()) = taken;
  use(c, taken, 1);
}

void restore(Context& c, Arguments&) {
  if (c.overrides.empty()) throw Wrong("restore without use");
  const auto [token, by_program] = c.overrides.back();
  check(c, c.world.pool_api().restore_stream(c.world.pool(), token, by_program));
  c.overrides.pop_back();
}

void make_event(Context& c, Arguments& a) {
  const std::string& name = a.word();
  const bool timing = a.more() && a.word() == "timing";
  auto* made = c.world.pool_api().event_create(c.world.pool(), timing);
  if (!made) throw Raised(c.world.pool_api().last_error());
  c.world.put(name, {kEvent, made, [](World& world, void* pointer) {
                       world.pool_api().event_destroy(static_cast<mpsforge_pool_event*>(pointer));
                     }});
}

void elapsed(Context& c, Arguments& a) {
  auto* from = event(c, a);
  auto* to = event(c, a);
  double milliseconds = -1;
  check(c, c.world.pool_api().event_elapsed(from, to, &milliseconds));
  c.observe(a, milliseconds >= 0);
}

std::string all_warnings(Context& c, int* count) {
  std::vector<char> text(16384);
  *count = c.world.pool_api().warnings(c.world.pool(), text.data(), text.size());
  return text.data();
}

void warned(Context& c, Arguments& a) {
  int count = 0;
  const std::string text = all_warnings(c, &count);
  const std::string& wanted = a.word();
  if (text.find(wanted) == std::string::npos) c.fail("no warning holds \"" + wanted + "\", there are: " + text);
}

void statistic(Context& c, Arguments& a) {
  mpsforge_pool_statistics all{};
  c.world.pool_api().statistics(c.world.pool(), &all);
  const std::map<std::string, uint64_t> named = {
      {"live", all.live},           {"peak", all.peak},           {"leases", all.leases},
      {"waits", all.waits},         {"shares", all.shares},       {"hand_over_waits", all.hand_over_waits},
      {"overtakes", all.overtakes}, {"commits", all.commits},     {"streams", all.streams},
      {"reused", all.reused},       {"allocated", all.allocated}, {"graphs", all.graphs},
      {"kernels", all.kernels},     {"profiled", all.profiled}};
  const std::string& name = a.word();
  const auto found = named.find(name);
  if (found == named.end()) throw Wrong("no statistic " + name);
  c.observe(a, static_cast<int64_t>(found->second));
}

void fails(Context& c, Arguments& a) {
  const std::string& wanted = a.word();
  const std::string& verb = a.word();
  const auto found = pool_verbs().find(verb);
  if (found == pool_verbs().end()) throw Wrong("fails: no verb " + verb);
  try {
    found->second(c, a);
  } catch (const Raised& raised) {
    if (std::string(raised.what()).find(wanted) == std::string::npos) {
      c.fail(verb + " fails with \"" + raised.what() + "\", which does not hold \"" + wanted + "\"");
    }
    while (a.more()) a.word();
    return;
  }
  c.fail(verb + " does not fail");
}

int switched(Arguments& a) {
  const std::string& word = a.word();
  if (word != "on" && word != "off") throw Wrong("on or off, not " + word);
  return word == "on";
}

}  // namespace

const std::map<std::string, Verb>& pool_verbs() {
  static const std::map<std::string, Verb> verbs = {
      {"tensor", make_tensor},
      {"free", free_tensor},
      {"record_stream",
       [](Context& c, Arguments& a) {
         auto* of = tensor(c, a).own;
         check(c, c.world.pool_api().record_stream(of, stream(c, a)));
       }},
      {"set", set},
      {"copy_to", copy_to},
      {"add_to", [](Context& c, Arguments& a) { two_inputs(c, a, "add"); }},
      {"multiply_to", [](Context& c, Arguments& a) { two_inputs(c, a, "multiply"); }},
      {"scale_to", scale_to},
      {"increment", increment},
      {"read", read},
      {"write", write},
      {"host", make_host},
      {"copy_to_host", copy_to_host},
      {"host.read", read_host},
      {"guard",
       [](Context& c, Arguments& a) {
         auto* block = c.world.callback(a.word());
         const auto all = uses(c, a);
         check(c, c.world.pool_api().guard(c.world.pool(), all.data(), all.size(), run_callback, block));
       }},
      {"fallback",
       [](Context& c, Arguments& a) {
         auto* block = c.world.callback(a.word());
         const auto all = uses(c, a);
         check(c, c.world.pool_api().fallback(c.world.pool(), all.data(), all.size(), run_python, block));
       }},
      {"python",
       [](Context& c, Arguments& a) {
         check(c, c.world.pool_api().suspended(c.world.pool(), run_python, c.world.callback(a.word())));
       }},
      {"stall",
       [](Context& c, Arguments& a) {
         auto* buffer = c.world.pool_api().command_buffer(c.world.pool(), stream(c, a));
         auto* until = c.world.get<mpsforge_metal_event>(a.word(), "shared event");
         c.world.metal().encode_wait(buffer, until, a.number());
       }},
      {"current", [](Context& c, Arguments& a) { c.observe(a, c.world.pool_api().current_stream(c.world.pool())); }},
      {"working",
       [](Context& c, Arguments& a) {
         uint32_t found = 0;
         check(c, c.world.pool_api().working_stream(c.world.pool(), &found));
         c.observe(a, found);
       }},
      {"use", [](Context& c, Arguments& a) { use(c, stream(c, a), 1); }},
      {"use_pooled", use_pooled},
      {"engine_use", [](Context& c, Arguments& a) { use(c, stream(c, a), 0); }},
      {"restore", restore},
      {"reset", [](Context& c, Arguments&) { check(c, c.world.pool_api().reset_stream(c.world.pool())); }},
      {"has_stream", [](Context& c, Arguments& a) { c.observe(a, c.world.pool_api().has_stream(c.world.pool())); }},
      {"release_slot",
       [](Context& c, Arguments&) { check(c, c.world.pool_api().release_stream_slot(c.world.pool())); }},
      {"end_thread", [](Context& c, Arguments&) { c.world.pool_api().end_thread(c.world.pool()); }},
      {"synchronize",
       [](Context& c, Arguments& a) { check(c, c.world.pool_api().synchronize(c.world.pool(), stream(c, a))); }},
      {"synchronize_device",
       [](Context& c, Arguments&) { check(c, c.world.pool_api().synchronize_device(c.world.pool())); }},
      {"commit_stream",
       [](Context& c, Arguments& a) { check(c, c.world.pool_api().commit(c.world.pool(), stream(c, a))); }},
      {"query",
       [](Context& c, Arguments& a) {
         int complete = 0;
         check(c, c.world.pool_api().query_stream(c.world.pool(), stream(c, a), &complete));
         c.observe(a, complete);
       }},
      {"on_queue",
       [](Context& c, Arguments& a) {
         const uint32_t on = stream(c, a);
         check(c, c.world.pool_api().on_queue(c.world.pool(), on, run_callback, c.world.callback(a.word())));
       }},
      {"on_stream_completed",
       [](Context& c, Arguments& a) {
         const uint32_t on = stream(c, a);
         auto* block = c.world.callback(a.word());
         check(c, c.world.pool_api().add_completed_handler(c.world.pool(), on, run_callback, block));
       }},
      {"take_command_buffer",
       [](Context& c, Arguments& a) {
         if (!c.world.pool_api().command_buffer(c.world.pool(), stream(c, a))) c.fail("no command buffer");
       }},
      {"take_encoder",
       [](Context& c, Arguments& a) {
         if (!c.world.pool_api().command_encoder(c.world.pool(), stream(c, a))) c.fail("no encoder");
       }},
      {"event", make_event},
      {"event.record",
       [](Context& c, Arguments& a) {
         auto* of = event(c, a);
         check(c, c.world.pool_api().event_record(of, stream(c, a)));
       }},
      {"event.wait",
       [](Context& c, Arguments& a) {
         auto* of = event(c, a);
         check(c, c.world.pool_api().event_wait(of, stream(c, a)));
       }},
      {"event.query",
       [](Context& c, Arguments& a) {
         int complete = 0;
         check(c, c.world.pool_api().event_query(event(c, a), &complete));
         c.observe(a, complete);
       }},
      {"event.synchronize",
       [](Context& c, Arguments& a) { check(c, c.world.pool_api().event_synchronize(event(c, a))); }},
      {"event.elapsed", elapsed},
      {"empty_cache", [](Context& c, Arguments&) { check(c, c.world.pool_api().empty_cache(c.world.pool())); }},
      {"profiler",
       [](Context& c, Arguments& a) { check(c, c.world.pool_api().profiler(c.world.pool(), switched(a))); }},
      {"warnings",
       [](Context& c, Arguments& a) {
         int count = 0;
         all_warnings(c, &count);
         c.observe(a, count);
       }},
      {"warned", warned},
      {"commits",
       [](Context& c, Arguments& a) {
         c.observe(a, static_cast<int64_t>(c.world.pool_api().stream_commits(c.world.pool(), stream(c, a))));
       }},
      {"statistic", statistic},
      {"fails", fails},
  };
  return verbs;
}

}  // namespace mpsforge::script
