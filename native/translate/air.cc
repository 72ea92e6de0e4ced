// The code of the functions of Metal.
#include <llvm/ADT/StringSwitch.h>

#include "../shaders/run.h"
#include "translate.h"

using namespace llvm;

namespace mpsforge::translate {
namespace {

// The type with another element; the element alone of what is no vector.
Type* like(Type* type, Type* element) {
  const auto* vector = dyn_cast<FixedVectorType>(type);
  return vector ? FixedVectorType::get(element, vector->getNumElements()) : element;
}

// LLVM's function that does the same. LLVM calls libm where the processor has no instruction.
Intrinsic::ID intrinsic(StringRef name) {
  if (name == "fmax") return Intrinsic::maxnum;
  if (name == "fmin") return Intrinsic::minnum;
  const bool same = is_contained<std::initializer_list<StringRef>>(
      {"fabs", "floor", "ceil", "trunc", "rint", "round", "sqrt", "exp",  "exp2", "exp10", "log", "log2",    "log10",
       "sin",  "cos",   "tan",  "asin",  "acos", "atan",  "sinh", "cosh", "tanh", "pow",   "fma", "copysign"},
      name);
  return same ? Function::lookupIntrinsicID(("llvm." + name).str()) : Intrinsic::not_intrinsic;
}

class Writer {
 public:
  explicit Writer(const MetalCall& call) : call_(call), b(call.b), result_(call.result) { call.name.split(part_, '.'); }

  Value* write() {
    StringRef head = part_[0], last = part_.back();
    if (head == "convert" && part_.size() == 5) return convert(part_[3][0], part_[1][0]);
    if (call_.name == "abs.s.i32") return b.CreateBinaryIntrinsic(Intrinsic::abs, value(0), b.getFalse());
    if (call_.name == "ldexp.f32") return b.CreateLdexp(value(0), value(1));
    if (call_.name == "get_simdgroup_size.i16") return b.getInt16(shaders::kSimdWidth);
    if (call_.name == "sincos.f32") {
      b.CreateStore(b.CreateUnaryIntrinsic(Intrinsic::cos, value(0)), value(1));
      return b.CreateUnaryIntrinsic(Intrinsic::sin, value(0));
    }
    if (head == "dot" && value(0)->getType()->getScalarType() == result_) {
      Value* product = b.CreateFMul(floats(value(0)), floats(value(1)));
      return resize(b.CreateFAddReduce(ConstantFP::get(b.getFloatTy(), 0), product), result_);
    }
    if (head == "wg" && last == "barrier") return wait("group_barrier", b.getVoidTy(), {value(0)});
    if (head == "simdgroup" && last == "barrier") return wait("simd_barrier", b.getVoidTy(), {value(0)});
    if (call_.name == "simd_sum.f32" || call_.name == "simd_max.f32") return wait(head + "_f32", result_, {value(0)});
    if (head.consume_front("simd_shuffle")) return shuffle(head);
    if (head.consume_front("simdgroup_matrix_8x8_")) return matrix(head);
    if (head == "atomic" && part_.size() > 3 && part_[1] == "global" && (last == "i32" || last == "f32")) {
      return atomic(part_[2], part_.size() > 4 ? part_[3] : "");
    }
    if (part_.size() == 2 && result_->isFPOrFPVectorTy()) return real(head);
    if (part_.size() == 3) return whole(head, part_[1]);
    unknown();
  }

 private:
  [[noreturn]] void unknown() const { throw Error("the function air." + call_.name + " is not known"); }

  Value* value(size_t i) const {
    if (i >= call_.values.size())
      throw Error("air." + call_.name + " has " + Twine(call_.values.size()) + " arguments");
    return call_.values[i];
  }

  Value* wait(const Twine& name, Type* result, ArrayRef<Value*> values) {
    SmallVector<Value*> all = {call_.run, call_.place};
    all.append(values.begin(), values.end());
    return call(b, "mpsforge_shader_" + name, result, all, true);
  }

  // Between floating-point types; half and bfloat by way of float.
  Value* resize(Value* value, Type* type) {
    return value->getType() == type ? value : b.CreateFPTrunc(floats(value), type);
  }
  Value* floats(Value* value) { return b.CreateFPExt(value, like(value->getType(), b.getFloatTy())); }

  // f, s and u say how both are meant.
  Value* convert(char from, char to) {
    if (from == 'f' && to == 'f') return resize(value(0), result_);
    if (from == 'f' && result_->isIntOrIntVectorTy(1)) {
      return b.CreateFCmpUNE(value(0), Constant::getNullValue(value(0)->getType()));  // as in C++
    }
    if (from == 'f') {
      // Out of range there are no rules; Apple's GPUs give the nearest number, and 0 for what is none.
      Value* number = floats(value(0));
      return b.CreateIntrinsic(to == 's' ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {result_, number->getType()},
                               number);
    }
    if (to != 'f') return b.CreateIntCast(value(0), result_, from == 's');
    Type* wide = like(result_, b.getFloatTy());
    return resize(from == 's' ? b.CreateSIToFP(value(0), wide) : b.CreateUIToFP(value(0), wide), result_);
  }

  Value* whole(StringRef function, StringRef sign) {
    const auto id = StringSwitch<Intrinsic::ID>((function + sign).str())
                        .Case("mins", Intrinsic::smin)
                        .Case("minu", Intrinsic::umin)
                        .Case("maxs", Intrinsic::smax)
                        .Case("maxu", Intrinsic::umax)
                        .Default(Intrinsic::not_intrinsic);
    if (!id) unknown();
    return b.CreateBinaryIntrinsic(id, value(0), value(1));
  }

  // Floating-point numbers, computed as float.
  Value* real(StringRef function) {
    function.consume_front("fast_");
    Type* wide = like(result_, b.getFloatTy());
    SmallVector<Value*> values = {floats(value(0))};
    for (size_t i = 1; i < call_.values.size(); ++i) values.push_back(floats(value(i)));
    if (function == "rsqrt") {
      return resize(b.CreateFDiv(ConstantFP::get(wide, 1), b.CreateUnaryIntrinsic(Intrinsic::sqrt, values[0])),
                    result_);
    }
    if (function == "fract") {
      Value* rest = b.CreateFSub(values[0], b.CreateUnaryIntrinsic(Intrinsic::floor, values[0]));
      // The largest number below 1, which Metal names.
      return resize(b.CreateMinNum(rest, ConstantFP::get(wide, 0x1.fffffep-1)), result_);
    }
    if (const auto id = intrinsic(function)) return resize(b.CreateIntrinsic(id, wide, values), result_);
    if (function == "nextafter" && result_->getPrimitiveSizeInBits() == 16) {
      values.append({b.CreateBitCast(value(0), b.getInt16Ty()), b.CreateBitCast(value(1), b.getInt16Ty())});
      return b.CreateBitCast(call(b, "mpsforge_shader_nextafter16", b.getInt16Ty(), values), result_);
    }
    std::string library = function == "sinpi" ? "mpsforge_shader_sinpi" : (function + "f").str();
    const bool known = is_contained<std::initializer_list<StringRef>>(
        {"nextafter", "asinh", "acosh", "atanh", "atan2", "fmod", "sinpi"}, function);
    if (!known || wide->isVectorTy()) unknown();
    return resize(call(b, library, wide, values), result_);
  }

  // An operation on device memory, all with the relaxed order of Metal's.
  Value* atomic(StringRef operation, StringRef kind) {
    constexpr auto order = AtomicOrdering::Monotonic;
    const auto reach = [&](uint32_t access) {
      return call(b, "mpsforge_shader_atomic", b.getPtrTy(),
                  {call_.run, b.CreatePtrToInt(value(0), b.getInt64Ty()), b.getInt64(4), b.getInt32(access)});
    };
    if (operation == "load") {
      LoadInst* load = b.CreateAlignedLoad(result_, reach(shaders::kRead), Align(4));
      load->setAtomic(order);
      return load;
    }
    if (operation == "store") {
      b.CreateAlignedStore(value(1), reach(shaders::kWrite), Align(4))->setAtomic(order);
      return nullptr;
    }
    Value* place = reach(shaders::kRead | shaders::kWrite);
    if (operation == "cmpxchg") {
      Value* pair = b.CreateAtomicCmpXchg(place, b.CreateLoad(result_, value(1)), value(2), Align(4), order, order);
      Value* old = b.CreateExtractValue(pair, 0);
      b.CreateStore(old, value(1));
      return old;
    }
    using Update = AtomicRMWInst;
    const StringRef sign = operation == "max" || operation == "min" ? kind : "";
    const auto update = StringSwitch<Update::BinOp>((operation + sign + (result_->isFloatTy() ? "f" : "")).str())
                            .Cases("xchg", "xchgf", Update::Xchg)
                            .Case("add", Update::Add)
                            .Case("addf", Update::FAdd)
                            .Case("sub", Update::Sub)
                            .Case("subf", Update::FSub)
                            .Case("and", Update::And)
                            .Case("or", Update::Or)
                            .Case("xor", Update::Xor)
                            .Case("maxs", Update::Max)
                            .Case("maxu", Update::UMax)
                            .Case("mins", Update::Min)
                            .Case("minu", Update::UMin)
                            .Default(Update::BAD_BINOP);
    if (update == Update::BAD_BINOP) unknown();
    return b.CreateAtomicRMW(update, place, value(1), Align(4), order);
  }

  // Memory of the thread, which is there as long as the function runs.
  Value* memory(Type* type, Value* holds = nullptr) {
    BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    Value* made = IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
    if (holds) b.CreateStore(holds, made);
    return made;
  }

  // A lane gets another one's value.
  Value* shuffle(StringRef how) {
    const bool fills = how == "_and_fill_up";
    if (!fills && how != "" && how != "_down" && how != "_up") unknown();
    Value* result = memory(result_);
    Value* size = b.getInt64(b.GetInsertBlock()->getModule()->getDataLayout().getTypeStoreSize(result_));
    const auto number = [&](size_t i) { return b.CreateZExt(value(i), b.getInt32Ty()); };
    Value* mine = memory(result_, value(0));
    if (fills) {
      Value* filling = memory(result_, value(1));
      wait("simd_fill_up", b.getVoidTy(), {mine, filling, result, size, number(2), number(3)});
    } else {
      wait(how == "" ? "simd_take" : "simd_shuffle", b.getVoidTy(),
           {mine, result, size, how == "_up" ? b.CreateNeg(number(1)) : number(1)});
    }
    return b.CreateLoad(result_, result);
  }

  // A function of the SIMD group's 8 x 8 matrices. A lane has two elements of one, the first two of the 64 that its
  // type has: kernels change those (thread_elements). Which they are: runtime.cc.
  Value* matrix(StringRef function) {
    const auto pair = [&](Type* element) { return FixedVectorType::get(element, 2); };
    const auto two = [&](Value* matrix) { return b.CreateShuffleVector(matrix, ArrayRef<int>{0, 1}); };
    const auto whole = [&](Value* two) {
      SmallVector<int> lanes(64, PoisonMaskElem);
      lanes[0] = 0, lanes[1] = 1;
      return b.CreateShuffleVector(two, lanes);
    };
    const auto move = [&](Value* elements, Type* element, size_t first, bool store) {
      Value* address = b.CreatePtrToInt(value(first), b.getInt64Ty());
      wait("matrix_move", b.getVoidTy(),
           {elements, address, b.getInt64(element->getPrimitiveSizeInBits() / 8), value(first + 1),
            b.CreateExtractElement(value(first + 2), uint64_t{0}), b.CreateExtractElement(value(first + 2), 1),
            b.CreateZExt(value(first + 3), b.getInt32Ty()), b.getInt32(store)});
    };
    Type* element = (function == "store" ? value(0)->getType() : result_)->getScalarType();
    if (function == "load") {
      Value* elements = memory(pair(element));
      move(elements, element, 0, false);
      return whole(b.CreateLoad(pair(element), elements));
    }
    if (function == "store") {
      move(memory(pair(element), two(value(0))), element, 1, true);
      return nullptr;
    }
    if (function == "init_filled") return whole(b.CreateVectorSplat(2, value(0)));
    if (function == "init_diag") {
      Value* bits = call(b, "mpsforge_shader_matrix_diagonal", b.getInt32Ty(), call_.run);
      Value* on = b.CreateBitCast(b.CreateTrunc(bits, b.getIntNTy(2)), pair(b.getInt1Ty()));
      return whole(b.CreateSelect(on, b.CreateVectorSplat(2, value(0)), Constant::getNullValue(pair(element))));
    }
    if (function != "multiply_accumulate") unknown();
    SmallVector<Value*> matrices;
    for (size_t i = 0; i < 3; ++i) matrices.push_back(memory(pair(b.getFloatTy()), floats(two(value(i)))));
    wait("matrix_multiply", b.getVoidTy(), matrices);
    return whole(resize(b.CreateLoad(pair(b.getFloatTy()), matrices[2]), pair(element)));
  }

  const MetalCall& call_;
  IRBuilder<>& b;
  Type* result_;
  SmallVector<StringRef> part_;
};

}  // namespace

bool waits(StringRef name) {
  if (!name.consume_front("simdgroup_matrix_8x8_")) {
    return name.starts_with("wg.barrier") || name.starts_with("simdgroup.barrier") || name.starts_with("simd_") ||
           name.starts_with("quad_");
  }
  return name.starts_with("load") || name.starts_with("store") || name.starts_with("multiply");
}

Value* metal_function(const MetalCall& call) { return Writer(call).write(); }

}  // namespace mpsforge::translate
