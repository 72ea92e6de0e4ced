// The program: translate NAME FILE... links the files, LLVM's code of Metal kernels, and writes NAME.bc, their code for
// this machine, and NAME.inc, what they are: KERNEL(name, symbol, waits, arguments) for each.
#include "translate.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/InitLLVM.h>
#include <llvm/Support/PrettyStackTrace.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <cstddef>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "../shaders/run.h"

using namespace llvm;

namespace mpsforge::translate {
namespace {

[[noreturn]] void refuse(const Instruction& at, const Twine& why) {
  std::string text;
  raw_string_ostream(text) << why << ":" << at;
  throw Error(at.getFunction()->getName() + ": " + text);
}

struct Kernel {
  Function* function;
  std::vector<std::string> kinds;  // of the arguments: "air.buffer", or what the thread is given
  std::string arguments;           // as the table has them, a comma before each
};

// Reads the metadata of the kernel's next argument.
void add_argument(Kernel& kernel, const MDOperand& operand) {
  const auto* node = dyn_cast_or_null<MDNode>(operand);
  if (!node) throw Error("an argument of " + kernel.function->getName() + " has no metadata");
  const auto text = [&](unsigned i) {
    const auto* found = i < node->getNumOperands() ? dyn_cast_or_null<MDString>(node->getOperand(i)) : nullptr;
    return found ? found->getString().str() : "";
  };
  std::map<std::string, std::string> texts;
  std::map<std::string, uint64_t> numbers;
  bool writes = false;
  for (unsigned i = 2; i < node->getNumOperands(); ++i) {
    writes = writes || text(i) == "air.read_write" || text(i) == "air.write";
    if (i + 1 == node->getNumOperands()) break;
    texts[text(i)] = text(i + 1);
    if (const auto* number = mdconst::dyn_extract_or_null<ConstantInt>(node->getOperand(i + 1))) {
      numbers[text(i)] = number->getZExtValue();
    }
  }
  const bool buffer = text(1) == "air.buffer" || text(1) == "air.indirect_buffer";
  const char* kind = !buffer ? "Position" : numbers["air.address_space"] == 3 ? "Threadgroup" : "Buffer";
  std::ostringstream row;
  row << ", {ArgumentKind::" << kind << ", " << numbers["air.location_index"] << ", "
      << (!buffer  ? "0"
          : writes ? "kRead | kWrite"
                   : "kRead")
      << ", " << numbers["air.arg_type_size"] << ", " << std::quoted(texts["air.arg_type_name"]) << ", "
      << std::quoted(texts["air.arg_name"]) << "}";
  kernel.arguments += row.str();
  kernel.kinds.push_back(buffer ? "air.buffer" : text(1));
}

std::vector<Kernel> kernels_in(const Module& module) {
  std::vector<Kernel> kernels;
  const NamedMDNode* list = module.getNamedMetadata("air.kernel");
  for (unsigned i = 0; list && i < list->getNumOperands(); ++i) {
    const MDNode& node = *list->getOperand(i);
    const bool whole = node.getNumOperands() >= 3;
    auto* function = whole ? mdconst::dyn_extract_or_null<Function>(node.getOperand(0)) : nullptr;
    const auto* arguments = whole ? dyn_cast_or_null<MDNode>(node.getOperand(2)) : nullptr;
    if (!function || function->isDeclaration() || !arguments)
      throw Error("kernel " + Twine(i) + " has no code or no metadata");
    Kernel kernel{function, {}, ""};
    for (const MDOperand& argument : arguments->operands()) add_argument(kernel, argument);
    if (function->arg_size() != kernel.kinds.size()) {
      throw Error(function->getName() + ": " + Twine(function->arg_size()) + " parameters, and metadata of " +
                  Twine(kernel.kinds.size()));
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Types without address spaces.
struct Flat : ValueMapTypeRemapper {
  Type* remapType(Type* type) override {
    if (type->isPointerTy()) return PointerType::getUnqual(type->getContext());
    if (auto* array = dyn_cast<ArrayType>(type))
      return ArrayType::get(remapType(array->getElementType()), array->getNumElements());
    if (auto* vector = dyn_cast<VectorType>(type))
      return VectorType::get(remapType(vector->getElementType()), vector->getElementCount());
    auto* members = dyn_cast<StructType>(type);
    if (!members || members->isOpaque()) return type;
    SmallVector<Type*> flat;
    for (Type* member : members->elements()) flat.push_back(remapType(member));
    return ArrayRef<Type*>(flat) == members->elements()
               ? type
               : StructType::get(type->getContext(), flat, members->isPacked());
  }
};

// The pointer that one was made from by arithmetic, in the same buffer.
Value* root_of(Value* pointer) {
  while (isa<GEPOperator, BitCastOperator, AddrSpaceCastOperator>(pointer))
    pointer = cast<User>(pointer)->getOperand(0);
  return pointer;
}

// Where a thread's answer to what a kernel's argument asks begins.
size_t position_of(StringRef kind, const Function& kernel) {
  using shaders::Thread;
  const auto place =
      StringSwitch<size_t>(kind)
          .Case("air.thread_position_in_grid", offsetof(Thread, in_grid))
          .Case("air.thread_position_in_threadgroup", offsetof(Thread, in_group))
          .Case("air.threadgroup_position_in_grid", offsetof(Thread, group_in_grid))
          .Case("air.threads_per_threadgroup", offsetof(Thread, this_group))
          .Case("air.dispatch_threads_per_threadgroup", offsetof(Thread, group))
          .Case("air.threads_per_grid", offsetof(Thread, threads))
          .Case("air.threadgroups_per_grid", offsetof(Thread, groups))
          .Case("air.thread_index_in_threadgroup", offsetof(Thread, index))
          .Case("air.thread_index_in_simdgroup", offsetof(Thread, lane))
          .Case("air.simdgroup_index_in_threadgroup", offsetof(Thread, simd))
          .Cases("air.threads_per_simdgroup", "air.thread_execution_width", offsetof(Thread, lanes))
          .Cases("air.simdgroups_per_threadgroup", "air.dispatch_simdgroups_per_threadgroup", offsetof(Thread, simds))
          .Default(sizeof(Thread));
  if (place == sizeof(Thread))
    throw Error(kernel.getName() + ": an argument is of the kind " + kind + ", which is not supported");
  return place;
}

class Translator {
 public:
  explicit Translator(Module& module) : module_(module) {}

  // What the kernels are goes into table.
  void translate(const std::string& name, std::ostream& table) {
    const std::vector<Kernel> kernels = kernels_in(module_);
    StripDebugInfo(module_);
    while (!module_.named_metadata_empty()) module_.eraseNamedMetadata(&*module_.named_metadata_begin());
    module_.setDataLayout("");  // the compiler knows this machine's
    module_.setTargetTriple("");
    std::vector<Function*> functions, declared;
    for (Function& function : module_) (function.isDeclaration() ? declared : functions).push_back(&function);
    for (Function* function : declared) {
      if (waits(metal_name(*function))) mark_waiting(*function);
    }
    for (Function* function : functions) {
      declare(*function);
      for (Instruction& at : make_early_inc_range(instructions(*function))) check(at, made_of(*function).getArg(0));
    }
    variables();
    for (Function* function : functions) change(*function);
    for (CallInst* each : calls_) change_call(*each);
    if (!unknown_.empty()) throw Error(join(unknown_, "; "));
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string symbol = "mpsforge_" + name + "_" + std::to_string(i);
      run_threads(kernels[i], symbol);
      table << "KERNEL(" << std::quoted(made_of(*kernels[i].function).getName().str()) << ", " << symbol << ", "
            << waiting_.count(kernels[i].function) << kernels[i].arguments << ")\n";
    }
    for (Function* function : functions) function->eraseFromParent();
    for (Function* function : declared) {
      if (function->use_empty()) function->eraseFromParent();
    }
  }

 private:
  // Without "air."; empty of what is no function of Metal.
  static StringRef metal_name(const Function& function) {
    StringRef name = function.getName();
    return name.consume_front("air.") ? name : "";
  }

  Function& made_of(const Function& old) { return *cast<Function>(map_[&old]); }

  // A function that waits makes those wait that call it.
  void mark_waiting(Function& function) {
    if (!waiting_.insert(&function).second) return;
    for (User* user : function.users()) {
      if (auto* call = dyn_cast<CallInst>(user)) mark_waiting(*call->getFunction());
    }
  }

  // Declares what a function becomes: its first parameter is the run.
  void declare(Function& old) {
    SmallVector<Type*> types = {PointerType::getUnqual(module_.getContext())};
    for (const auto& parameter : old.args()) types.push_back(flat_.remapType(parameter.getType()));
    auto* type = FunctionType::get(flat_.remapType(old.getReturnType()), types, false);
    Function* made = Function::Create(type, GlobalValue::InternalLinkage, "", module_);
    made->setCallingConv(old.getCallingConv());
    // What the attributes say of memory does not hold: a barrier lets other threads run.
    made->setDoesNotThrow();
    if (old.isConvergent()) made->setConvergent();
    map_[&old] = made;
  }

  // A function asks for the variables in threadgroup memory that it uses. What they hold at first is not defined.
  void variables() {
    std::vector<Constant*> all;
    for (GlobalVariable& variable : module_.globals()) {
      const Constant* holds = variable.hasInitializer() ? variable.getInitializer() : nullptr;
      if (variable.getAddressSpace() != 3 || !variable.hasLocalLinkage() || !holds ||
          !(isa<UndefValue>(holds) || holds->isNullValue())) {
        throw Error("the global " + variable.getName() + " is not supported");
      }
      all.push_back(&variable);
    }
    if (all.size() > shaders::kVariables) throw Error(Twine(all.size()) + " variables in threadgroup memory");
    convertUsersOfConstantsToInstructions(all);
    for (size_t number = 0; number < all.size(); ++number) {
      auto* variable = cast<GlobalVariable>(all[number]);
      std::map<Function*, Value*> places;
      for (Use& use : make_early_inc_range(variable->uses())) {
        auto* user = dyn_cast<Instruction>(use.getUser());
        if (!user) throw Error("the global " + variable->getName() + " is used by another one");
        Value*& place = places[user->getFunction()];
        if (!place) {
          BasicBlock& entry = user->getFunction()->getEntryBlock();
          IRBuilder<> b(&entry, entry.begin());
          place = call(b, "mpsforge_shader_variable", b.getPtrTy(),
                       {made_of(*entry.getParent()).getArg(0), b.getInt32(number),
                        ConstantExpr::getSizeOf(variable->getValueType())});
          place = b.CreateAddrSpaceCast(place, variable->getType());
        }
        use.set(place);
      }
      variable->eraseFromParent();
    }
  }

  // Gives a function's code to what it becomes.
  void change(Function& old) {
    Function& made = made_of(old);
    made.splice(made.begin(), &old);
    made.takeName(&old);
    for (auto& parameter : old.args()) map_[&parameter] = made.getArg(parameter.getArgNo() + 1);
    for (Instruction& at : instructions(made))
      RemapInstruction(&at, map_, RF_IgnoreMissingLocals | RF_NoModuleLevelChanges, &flat_);
    for (Instruction& at : make_early_inc_range(instructions(made))) {
      // A pointer is no place in an object for LLVM, so it must not believe so.
      if (auto* place = dyn_cast<GetElementPtrInst>(&at)) place->setNoWrapFlags(GEPNoWrapFlags::none());
      if (isa<AddrSpaceCastInst>(at)) replace(at, at.getOperand(0));
    }
  }

  static void replace(Instruction& old, Value* value) {
    if (value) old.replaceAllUsesWith(value);
    old.eraseFromParent();
  }

  // Checks what an instruction does with memory outside of the thread's stack, and notes calls that are to be changed.
  void check(Instruction& at, Value* run) {
    at.dropUnknownNonDebugMetadata();
    if (auto* call = dyn_cast<CallBase>(&at)) call->setAttributes({});
    if (auto* load = dyn_cast<LoadInst>(&at); load && !load->isAtomic()) {
      if (load->getPointerAddressSpace() != 0) replace(at, checked_load(*load, run));
    } else if (auto* store = dyn_cast<StoreInst>(&at); store && !store->isAtomic()) {
      if (store->getPointerAddressSpace() == 0) return;
      IRBuilder<> b(&at);
      Value* value = store->getValueOperand();
      const uint64_t size = size_of(value->getType());
      if (size == 0 || value->getType()->isPointerTy()) refuse(at, "a store of such a type is not supported");
      b.CreateAlignedStore(value, reach(b, run, "write", store->getPointerOperand(), {size}), Align(1));
      at.eraseFromParent();
    } else if (auto* copy = dyn_cast<MemCpyInst>(&at)) {
      check_copy(*copy, run);
    } else if (auto* call = dyn_cast<CallInst>(&at)) {
      const Function* callee = call->getCalledFunction();
      if (callee && callee->isIntrinsic()) {
        for (const Value* value : call->args()) {
          if (value->getType()->isPtrOrPtrVectorTy() && value->getType()->getPointerAddressSpace() != 0)
            refuse(at, "not understood");
        }
      } else if (callee && (!callee->isDeclaration() || metal_name(*callee) != "")) {
        calls_.push_back(call);
      } else {
        refuse(at, "a call of what is not known");
      }
    } else if (at.mayReadOrWriteMemory()) {
      refuse(at, "not understood");
    } else if (at.isIntDivRem() && !isa<Constant>(at.getOperand(1))) {
      divide(at);
    }
  }

  // How many bytes a load or store of the type touches; 0: there may be none of it.
  uint64_t size_of(Type* type) const {
    const bool plain = isa<IntegerType, PointerType, FixedVectorType>(type) || type->isFloatingPointTy();
    return !plain || isa<PointerType>(type->getScalarType()) != isa<PointerType>(type)
               ? 0
               : module_.getDataLayout().getTypeStoreSize(type).getFixedValue();
  }

  // Checks an access, and returns where the bytes are.
  static Value* reach(IRBuilder<>& b, Value* run, const char* how, Value* address, ArrayRef<uint64_t> sizes) {
    SmallVector<Value*> values = {run, b.CreatePtrToInt(root_of(address), b.getInt64Ty()),
                                  b.CreatePtrToInt(address, b.getInt64Ty())};
    for (uint64_t size : sizes) values.push_back(b.getInt64(size));
    return call(b, Twine("mpsforge_shader_") + how, b.getPtrTy(), values);
  }

  // A pointer that is read gets the slot of the buffer that it leads to.
  Value* checked_load(LoadInst& load, Value* run) {
    IRBuilder<> b(&load);
    Type* type = load.getType();
    const uint64_t size = size_of(type);
    if (size == 0) refuse(load, "a load of such a type is not supported");
    // A vector of 3 has the size of one of 4, unless it is packed. PyTorch does not always give the last one, but
    // elements of an array are reported to the checker as one range.
    const auto* vector = dyn_cast<FixedVectorType>(type);
    const uint64_t four = vector && vector->getNumElements() == 3 ? size / 3 * 4 : 0;
    Value* place =
        reach(b, run, "read", load.getPointerOperand(), {size, load.getAlign().value() == four ? four : size});
    if (!type->isPointerTy()) return b.CreateAlignedLoad(type, place, Align(1));
    Value* address = b.CreateAlignedLoad(b.getInt64Ty(), place, Align(1));
    return b.CreateIntToPtr(call(b, "mpsforge_shader_adopt", b.getInt64Ty(), {run, address}), type);
  }

  // Checks those ends of a copy that are in a buffer or in threadgroup memory.
  void check_copy(MemCpyInst& copy, Value* run) {
    if (copy.getDestAddressSpace() == 0 && copy.getSourceAddressSpace() == 0) return;
    const auto* length = dyn_cast<ConstantInt>(copy.getLength());
    if (!length || copy.isVolatile()) refuse(copy, "not understood");
    const uint64_t size = length->getZExtValue();
    IRBuilder<> b(&copy);
    Value *to = copy.getRawDest(), *from = copy.getRawSource();
    if (copy.getDestAddressSpace() != 0) to = reach(b, run, "write", to, {size});
    if (copy.getSourceAddressSpace() != 0) from = reach(b, run, "read", from, {size, size});
    b.CreateMemCpy(to, {}, from, {}, size);
    copy.eraseFromParent();
  }

  // Changes a division so that it does not end the process, as none does on a GPU: by 0, and of the least number by -1,
  // whose results Metal leaves open, it is by 1.
  static void divide(Instruction& at) {
    IRBuilder<> b(&at);
    Value *left = at.getOperand(0), *right = at.getOperand(1);
    Type* type = right->getType();
    Value* wrong = b.CreateICmpEQ(right, Constant::getNullValue(type));
    if (at.getOpcode() == Instruction::SDiv || at.getOpcode() == Instruction::SRem) {
      Value* least = ConstantInt::get(type, APInt::getSignedMinValue(type->getScalarSizeInBits()));
      Value* beyond = b.CreateAnd(b.CreateICmpEQ(right, Constant::getAllOnesValue(type)), b.CreateICmpEQ(left, least));
      wrong = b.CreateOr(wrong, beyond);
    }
    at.setOperand(1, b.CreateSelect(wrong, ConstantInt::get(type, 1), right));
  }

  void change_call(CallInst& old) {
    IRBuilder<> b(&old);
    Value* run = old.getFunction()->getArg(0);
    auto* callee = cast<Function>(old.getCalledOperand());
    SmallVector<Value*> values(old.args());
    if (callee->isDeclaration() && metal_name(*callee) != "") {
      try {
        Value* value = metal_function({b, metal_name(*callee), old.getType(), values, run, b.getInt32(++place_)});
        if (!old.getType()->isVoidTy() && (!value || value->getType() != old.getType()))
          throw Error(callee->getName() + " gives another type");
        replace(old, old.getType()->isVoidTy() ? nullptr : value);
      } catch (const Error& error) {
        unknown_.insert(error.what());
      }
      return;
    }
    values.insert(values.begin(), run);
    CallInst* made = b.CreateCall(callee, values);
    made->setCallingConv(old.getCallingConv());
    made->setTailCallKind(old.getTailCallKind());
    if (isa<FPMathOperator>(made)) made->copyFastMathFlags(&old);
    replace(old, made);
  }

  // Makes the function that runs threads of a kernel's threadgroup, and one that a loop over them calls (access.cc).
  void run_threads(const Kernel& kernel, const std::string& symbol) {
    Function& made = made_of(*kernel.function);
    IRBuilder<> b(module_.getContext());
    auto* type = FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
    Function* one = Function::Create(type, GlobalValue::InternalLinkage, symbol + ".one", module_);
    one->addFnAttr(Attribute::AlwaysInline);
    one->setDoesNotThrow();
    b.SetInsertPoint(BasicBlock::Create(b.getContext(), "", one));
    SmallVector<Value*> values = {one->getArg(0)};
    for (size_t i = 0; i < kernel.kinds.size(); ++i) {
      Type* wanted = made.getArg(i + 1)->getType();
      if (kernel.kinds[i] == "air.buffer") {
        values.push_back(b.CreateIntToPtr(
            call(b, "mpsforge_shader_argument", b.getInt64Ty(), {one->getArg(0), b.getInt32(i)}), wanted));
        continue;
      }
      const size_t place = position_of(kernel.kinds[i], made);
      const auto* vector = dyn_cast<FixedVectorType>(wanted);
      const unsigned dimensions = vector ? vector->getNumElements() : 1,
                     most = place < offsetof(shaders::Thread, index) ? 3 : 1;
      if (!wanted->isIntOrIntVectorTy() || dimensions > most) {
        throw Error(made.getName() + " asks for a position of another type");
      }
      Value* all = PoisonValue::get(wanted);
      for (unsigned d = 0; d < dimensions; ++d) {
        Value* at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), one->getArg(1), place + d * sizeof(uint32_t));
        Value* value = b.CreateZExtOrTrunc(b.CreateLoad(b.getInt32Ty(), at), wanted->getScalarType());
        all = vector ? b.CreateInsertElement(all, value, d) : value;
      }
      values.push_back(all);
    }
    b.CreateCall(&made, values)->setCallingConv(made.getCallingConv());
    b.CreateRetVoid();
    type = FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}, false);
    Function* threads = Function::Create(type, GlobalValue::ExternalLinkage, symbol, module_);
    threads->setVisibility(GlobalValue::HiddenVisibility);
    threads->setDoesNotThrow();
    threads->addParamAttr(0, Attribute::NoAlias);
    b.SetInsertPoint(BasicBlock::Create(b.getContext(), "", threads));
    call(b, "mpsforge_shader_loop", b.getVoidTy(), {threads->getArg(0), threads->getArg(1), threads->getArg(2), one});
    b.CreateRetVoid();
  }

  Module& module_;
  Flat flat_;
  ValueToValueMapTy map_;         // from a function, or its parameter, to what it becomes
  std::vector<CallInst*> calls_;  // of functions of the module, and of Metal
  std::set<const Function*> waiting_;
  std::set<std::string> unknown_;
  uint32_t place_ = 0;
};

void translate(const std::string& name, char** first, char** last) {
  LLVMContext context;
  std::string said;
  context.setDiagnosticHandlerCallBack(
      [](const DiagnosticInfo* what, void* said) {
        raw_string_ostream stream(*static_cast<std::string*>(said));
        DiagnosticPrinterRawOStream printer(stream);
        if (what->getSeverity() == DS_Error) what->print(printer);
      },
      &said);
  Module whole(name, context);
  Linker linker(whole);
  for (char** file = first; file != last; ++file) {
    const PrettyStackTraceString named_if_llvm_crashes(*file);
    SMDiagnostic why;
    std::unique_ptr<Module> part = parseIRFile(*file, why, context);
    if (!part) throw Error(Twine(*file) + ": " + why.getMessage());
    if (linker.linkInModule(std::move(part))) throw Error(Twine(*file) + ": " + said);
  }
  std::ostringstream table;
  Translator(whole).translate(name, table);
  raw_string_ostream stream(said);
  if (verifyModule(whole, &stream)) throw Error("what it becomes is not valid: " + said);
  std::error_code failed;
  raw_fd_ostream bitcode(name + ".bc", failed);
  if (failed) throw Error(name + ".bc: " + failed.message());
  WriteBitcodeToFile(whole, bitcode);
  std::ofstream rows(name + ".inc");
  if (!(rows << table.str() << std::flush)) throw Error(name + ".inc cannot be written");
}

}  // namespace

Value* call(IRBuilder<>& b, const Twine& name, Type* result, ArrayRef<Value*> values, bool waits) {
  SmallVector<Type*> types;
  for (const Value* value : values) types.push_back(value->getType());
  auto callee =
      b.GetInsertBlock()->getModule()->getOrInsertFunction(name.str(), FunctionType::get(result, types, false));
  if (auto* function = dyn_cast<Function>(callee.getCallee())) {
    function->setDoesNotThrow();
    if (types[0]->isPointerTy()) function->addParamAttr(0, Attribute::NoCapture);
    if (waits) function->setConvergent();
  }
  return b.CreateCall(callee, values);
}

}  // namespace mpsforge::translate

int main(int argc, char** argv) {
  const InitLLVM says_where_it_crashes(argc, argv);
  if (argc < 3) {
    std::cerr << "use: translate NAME FILE...\n";
    return 2;
  }
  try {
    mpsforge::translate::translate(argv[1], argv + 2, argv + argc);
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << "\n";
    return 1;
  }
}
