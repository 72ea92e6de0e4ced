// What an operator does: enter a guard, capture stream and cached object, encode.
#include <cstring>
#include <string>
#include <vector>

#include "failure.h"
#include "kernels.h"
#include "reference.h"

namespace mpsforge::pool {
namespace {

// Encodes a blit on an encoder of its own. On the queue.
template <class Encode>
void blit(const mpsforge_metal_api& metal, Stream& stream, Encode encode) {
  mpsforge_metal_command_buffer* buffer = stream.command_buffer();
  stream.end_encoder();
  const auto encoder = owned(metal.blit_encoder(buffer), metal.encoder_release);
  encode(encoder.get());
  metal.end_encoding(encoder.get());
}

// One operator on its way to the stream.
class Encoding {
 public:
  // Throws Failure if the operator makes no sense.
  Encoding(mpsforge_pool& pool, const mpsforge_pool_operator& op) : pool_(pool), op_(op), path_(op.path) {
    kernel_ = op.name ? find_kernel(op.name) : nullptr;
    if (!kernel_) throw Failure(std::string("no operator ") + (op.name ? op.name : "without a name"));
    if (op.path > MPSFORGE_POOL_BLIT) throw Failure("no path " + std::to_string(op.path));
    if (op.input_count != kernel_->inputs || !op.output) {
      throw Failure(std::string(kernel_->name) + " takes " + std::to_string(kernel_->inputs) +
                    " inputs and one output");
    }
    for (size_t i = 0; i < op.input_count; ++i) add(*op.inputs[i]);
    add(*op.output);
    for (const mpsforge_pool_tensor* tensor : tensors_) uses_.emplace_back(tensor->block, tensor == op.output);
    choose_path();
  }

  const Uses& uses() const { return uses_; }
  const char* name() const { return kernel_->name; }

  // Rules 5 and 19: for the calling thread, before a block is entered.
  void fetch_object() {
    if (path_ == MPSFORGE_POOL_GRAPH) {
      object_ = pool_.threads.graphs.take(std::string(kernel_->name) + " " + std::to_string(op_.key));
    } else if (path_ == MPSFORGE_POOL_MATRIX) {
      object_ = pool_.threads.kernels.take(kernel_->name);
    }
  }

  // On the queue.
  void encode(Stream& stream) const {
    switch (path_) {
      case MPSFORGE_POOL_BLIT:
        encode_blit(stream);
        return;
      case MPSFORGE_POOL_GRAPH:
        stream.command_buffer();
        stream.end_encoder();  // a graph makes encoders of its own
        encode_object(stream.command_buffer(), nullptr);
        return;
      case MPSFORGE_POOL_MATRIX: {
        mpsforge_metal_encoder* encoder = stream.compute_encoder();
        const sync::Lock lock(pool_.encode_lock);  // rule 20
        encode_object(stream.command_buffer(), encoder);
        return;
      }
      default:
        encode_kernel(stream.compute_encoder());
    }
  }

 private:
  void add(mpsforge_pool_tensor& tensor) {
    if (&tensor.pool != &pool_) throw Failure("a tensor of another pool");
    if (tensor.elements != op_.output->elements) throw Failure("tensors of different sizes");
    tensor.cpu_next = false;
    tensors_.push_back(&tensor);
  }

  void choose_path() {
    if (path_ != MPSFORGE_POOL_BLIT) return;
    const bool copies = kernel_->inputs == 1 && !kernel_->takes_value;
    const bool fills = kernel_->inputs == 0 && !kernel_->reads_output;
    if (!copies && !fills) throw Failure(std::string("no blit does ") + kernel_->name);
    // Metal's blits fill with one byte, and copy between ranges that do not overlap.
    uint8_t value[sizeof(int32_t)];
    std::memcpy(value, &op_.value, sizeof value);
    const bool one_byte = value[0] == value[1] && value[1] == value[2] && value[2] == value[3];
    if (fills ? !one_byte : op_.inputs[0]->block == op_.output->block) path_ = MPSFORGE_POOL_KERNEL;
  }

  void encode_blit(Stream& stream) const {
    const mpsforge_metal_api& metal = pool_.backend.metal;
    mpsforge_metal_buffer* out = op_.output->block->buffer.get();
    blit(metal, stream, [&](mpsforge_metal_encoder* encoder) {
      if (kernel_->inputs == 0) {
        metal.fill(encoder, out, 0, op_.output->bytes(), static_cast<uint8_t>(op_.value & 0xff));
      } else {
        metal.copy(encoder, op_.inputs[0]->block->buffer.get(), 0, out, 0, op_.output->bytes());
      }
    });
  }

  void encode_kernel(mpsforge_metal_encoder* encoder) const {
    const mpsforge_metal_api& metal = pool_.backend.metal;
    metal.set_kernel(encoder, kernel_->function);
    uint32_t index = 0;
    for (const mpsforge_pool_tensor* tensor : tensors_) {
      metal.set_buffer(encoder, index++, tensor->block->buffer.get(), 0);
    }
    if (kernel_->takes_value) metal.set_bytes(encoder, index, &op_.value, sizeof op_.value);
    metal.dispatch(encoder, op_.output->elements);
  }

  void encode_object(mpsforge_metal_command_buffer* buffer, mpsforge_metal_encoder* encoder) const {
    std::vector<mpsforge_metal_binding> bindings;
    for (const mpsforge_pool_tensor* tensor : tensors_) bindings.push_back({tensor->block->buffer.get(), 0});
    pool_.backend.metal.mps_encode(object_.get(), buffer, encoder, kernel_->function, bindings.data(), bindings.size(),
                                   kernel_->takes_value ? &op_.value : nullptr,
                                   kernel_->takes_value ? sizeof op_.value : 0, op_.output->elements);
  }

  mpsforge_pool& pool_;
  const mpsforge_pool_operator& op_;
  uint32_t path_;
  const Kernel* kernel_ = nullptr;
  std::vector<const mpsforge_pool_tensor*> tensors_;  // the inputs, then the output
  Uses uses_;
  std::shared_ptr<mpsforge_metal_mps_kernel> object_;  // pinned for as long as it is used (rule 19)
};

// Memory of one operator that the CPU writes before it, or reads after it. Fresh: nobody else can use it.
class Staging {
 public:
  Staging(mpsforge_pool& pool, const Stream& stream, size_t bytes)
      : memory_(pool.memory), block_(pool.memory.take(stream, bytes, true)) {}
  ~Staging() { memory_.give_back(block_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  mpsforge_metal_buffer* buffer() const { return block_->buffer.get(); }

 private:
  Memory& memory_;
  Block* const block_;
};

// Rule 13: what copies of any thread left to be written on the CPU is written. Plainer than the patches, which let the
// GPU wait. Guard rule 7: suspended.
void await_copies(mpsforge_pool& pool) {
  if (pool.threads.orders_itself()) return;
  for (Stream* stream : pool.streams.live()) {
    const uint64_t position = stream->copied();
    if (position == 0) continue;
    Guard::suspended(pool, [&] {
      const Blocking gil(pool.config);
      stream->run([&] { stream->close_up_to(position); });
      stream->wait_for(position);
    });
  }
}

}  // namespace

mpsforge_pool_tensor* empty(mpsforge_pool& pool, size_t elements, bool for_cpu) {
  if (elements == 0 || elements > SIZE_MAX / sizeof(int32_t)) {
    throw Failure("no tensor of " + std::to_string(elements) + " elements");
  }
  const Stream& stream = pool.working_stream();
  Block* block = pool.memory.take(stream, elements * sizeof(int32_t), for_cpu);
  return new mpsforge_pool_tensor{pool, block, elements, {for_cpu}};
}

Uses uses_of(mpsforge_pool& pool, const mpsforge_pool_use* uses, size_t count) {
  Uses result;
  for (size_t i = 0; i < count; ++i) {
    if (&uses[i].tensor->pool != &pool) throw Failure("a tensor of another pool");
    uses[i].tensor->cpu_next = false;
    result.emplace_back(uses[i].tensor->block, uses[i].writes != 0);
  }
  return result;
}

void operate(mpsforge_pool& pool, const mpsforge_pool_operator& op) {
  Encoding encoding(pool, op);
  const Guard guard(pool, encoding.uses());
  Stream& stream = guard.stream();  // rule 5: captured here
  encoding.fetch_object();
  stream.run([&] {
    encoding.encode(stream);
    if (pool.profiler.on()) pool.profiler.profile(stream, encoding.name());
  });
}

void read(mpsforge_pool_tensor& tensor, int32_t* to) {
  mpsforge_pool& pool = tensor.pool;
  const mpsforge_metal_api& metal = pool.backend.metal;
  tensor.cpu_next = false;
  const Guard guard(pool, {{tensor.block, false}});
  Stream& stream = guard.stream();
  const Staging staging(pool, stream, tensor.bytes());
  uint64_t position = 0;
  stream.run([&] {
    blit(metal, stream, [&](mpsforge_metal_encoder* encoder) {
      metal.copy(encoder, tensor.block->buffer.get(), 0, staging.buffer(), 0, tensor.bytes());
    });
    stream.close();
    position = stream.committed();
  });
  // Guard rule 7: off the queue and suspended, so that others can encode meanwhile.
  Guard::suspended(pool, [&] { stream.wait_for(position); });
  std::string error;
  stream.run([&] { error = stream.take_error(); });
  if (!error.empty()) throw Failure(error);
  metal.cpu_read(staging.buffer(), 0, tensor.bytes(), to);
  await_copies(pool);
}

void write(mpsforge_pool_tensor& tensor, const int32_t* from) {
  mpsforge_pool& pool = tensor.pool;
  const mpsforge_metal_api& metal = pool.backend.metal;
  if (tensor.cpu_next) {
    metal.cpu_write(tensor.block->buffer.get(), 0, tensor.bytes(), from);
    await_copies(pool);
    return;
  }
  const Guard guard(pool, {{tensor.block, true}});
  Stream& stream = guard.stream();
  const Staging staging(pool, stream, tensor.bytes());
  metal.cpu_write(staging.buffer(), 0, tensor.bytes(), from);
  stream.run([&] {
    blit(metal, stream, [&](mpsforge_metal_encoder* encoder) {
      metal.copy(encoder, staging.buffer(), 0, tensor.block->buffer.get(), 0, tensor.bytes());
    });
    // So that the staging memory becomes free again, as stock commits its copies.
    stream.close();
  });
  await_copies(pool);
}

mpsforge_pool_host* host(mpsforge_pool& pool, size_t elements) {
  const mpsforge_metal_api& metal = pool.backend.metal;
  const auto buffer =
      owned(metal.buffer_create(pool.backend.device, elements * sizeof(int32_t), MPSFORGE_METAL_SHARED, "host"),
            metal.buffer_release);
  if (!buffer) throw Failure("no memory of " + std::to_string(elements) + " elements");
  return new mpsforge_pool_host{pool, buffer, elements};
}

void copy_to_host(mpsforge_pool_tensor& tensor, const mpsforge_pool_host& host) {
  if (tensor.elements != host.elements) throw Failure("a copy between different sizes");
  mpsforge_pool& pool = tensor.pool;
  tensor.cpu_next = false;
  const Guard guard(pool, {{tensor.block, false}});
  Stream& stream = guard.stream();
  stream.run([&] {
    blit(pool.backend.metal, stream, [&](mpsforge_metal_encoder* encoder) {
      pool.backend.metal.copy(encoder, tensor.block->buffer.get(), 0, host.buffer.get(), 0, tensor.bytes());
    });
    stream.note_copy();
  });
}

}  // namespace mpsforge::pool
