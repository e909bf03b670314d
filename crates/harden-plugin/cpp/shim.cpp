// What LLVM's C interface lacks: the pass registration, block splitting, SSA repair, invokes, and a few queries.
// Everything that decides lives in Rust; this file only acts.
#include "llvm-c/Core.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"

using namespace llvm;

extern "C" bool raddle_harden_module(LLVMModuleRef module);
extern "C" bool raddle_harden_synchronises(const char *name, size_t length);
extern "C" bool raddle_harden_is_around(const char *name, size_t length);
extern "C" void rdl_register_faults();

namespace {

// Without optimisation every local lives in memory and would end regions: bring scalars into registers first. Clang says
// which functions it was told not to optimise, rustc does not.
void promoteLocals(Module &module, ModuleAnalysisManager &analyses, bool inAllFunctions) {
  auto &functions =
      analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
  for (Function &function : module) {
    bool wanted = inAllFunctions || function.hasFnAttribute(Attribute::OptimizeNone);
    if (function.isDeclaration() || !wanted)
      continue;
    function.removeFnAttr(Attribute::OptimizeNone);
    SROAPass sroa(SROAOptions::PreserveCFG);
    PreservedAnalyses kept = sroa.run(function, functions);
    functions.invalidate(function, kept);
  }
}

using NameTest = bool (*)(const char *, size_t);

// Calls of functions with bodies and such names.
SmallVector<CallBase *, 8> callsOf(Function &function, NameTest test) {
  SmallVector<CallBase *, 8> found;
  for (Instruction &inst : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&inst))
      if (Function *callee = call->getCalledFunction())
        if (callee != &function && !callee->isDeclaration() && test(callee->getName().data(), callee->getName().size()))
          found.push_back(call);
  return found;
}

// Without optimisation the locks and atomics of C++ and Rust are functions around functions around one instruction or
// call. Where one is used, they are dissolved, and the remains tidied up, so that it can be seen. Other functions of the
// program stay as they were.
void dissolveSynchronisation(Module &module) {
  const unsigned roundsMax = 12, callsMax = 2000;
  SmallVector<Function *, 16> changed;
  for (Function &function : module) {
    if (function.isDeclaration() ||
        raddle_harden_is_around(function.getName().data(), function.getName().size()) ||
        callsOf(function, raddle_harden_synchronises).empty())
      continue;
    unsigned calls = 0;
    for (unsigned round = 0; round < roundsMax && calls < callsMax; round++) {
      SmallVector<CallBase *, 8> found = callsOf(function, raddle_harden_is_around);
      if (found.empty())
        break;
      for (CallBase *call : found) {
        InlineFunctionInfo info;
        calls += InlineFunction(*call, info).isSuccess();
      }
    }
    changed.push_back(&function);
  }
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  FunctionPassManager tidy =
      builder.buildFunctionSimplificationPipeline(OptimizationLevel::O1, ThinOrFullLTOPhase::None);
  for (Function *function : changed)
    tidy.run(*function, functions);
}

// Splitting the entry block must not carry a stack slot out of it, where it would be allocated anew each time.
void gatherSlots(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    BasicBlock &entry = function.getEntryBlock();
    BasicBlock::iterator head = entry.begin();
    for (Instruction &inst : make_early_inc_range(entry)) {
      auto *slot = dyn_cast<AllocaInst>(&inst);
      if (!slot || !slot->isStaticAlloca())
        continue;
      if (slot->getIterator() == head)
        ++head;
      else
        slot->moveBefore(entry, head);
    }
  }
}

// Rust's contended lock cannot panic, but where a guard is held the compiler does not know and invokes it.
void callRustLocks(Module &module) {
  for (Function &function : module) {
    SmallVector<InvokeInst *, 4> locks;
    for (BasicBlock &block : function)
      if (auto *invoke = dyn_cast<InvokeInst>(block.getTerminator()))
        if (Function *callee = invoke->getCalledFunction())
          if (callee->getName().contains("5mutex5futex") && callee->getName().contains("14lock_contended"))
            locks.push_back(invoke);
    for (InvokeInst *invoke : locks)
      changeToCall(invoke);
    if (!locks.empty())
      removeUnreachableBlocks(function);
  }
}

struct HardenPass : PassInfoMixin<HardenPass> {
  bool isUnoptimised = false;
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
    promoteLocals(module, analyses, isUnoptimised);
    dissolveSynchronisation(module);
    callRustLocks(module);
    gatherSlots(module);
    raddle_harden_module(wrap(&module));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

void registerCallbacks(PassBuilder &builder) {
  builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &manager, OptimizationLevel, ThinOrFullLTOPhase phase) {
        if (phase == ThinOrFullLTOPhase::None || phase == ThinOrFullLTOPhase::ThinLTOPostLink)
          manager.addPass(HardenPass());
      });
  builder.registerFullLinkTimeOptimizationLastEPCallback(
      [](ModulePassManager &manager, OptimizationLevel) { manager.addPass(HardenPass()); });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager &manager, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "raddle-harden" && name != "raddle-harden-unoptimised")
          return false;
        HardenPass pass;
        pass.isUnoptimised = name != "raddle-harden";
        manager.addPass(std::move(pass));
        return true;
      });
}

// What is known of a function while it is not being changed.
struct Facts {
  DominatorTree tree;
  AssumptionCache assumptions;
  explicit Facts(Function &function) : tree(function), assumptions(function) {}
};

Instruction *instruction(LLVMValueRef value) { return cast<Instruction>(unwrap(value)); }

} // namespace

extern "C" {

// The entry point of the plugin; the exported symbol is in Rust and calls this.
void rdl_plugin_info(PassPluginLibraryInfo *info) {
  rdl_register_faults();
  *info = {LLVM_PLUGIN_API_VERSION, "raddle-harden", "1", registerCallbacks, nullptr};
}

bool rdl_may_write(LLVMValueRef value) { return instruction(value)->mayWriteToMemory(); }
bool rdl_may_read(LLVMValueRef value) { return instruction(value)->mayReadFromMemory(); }

LLVMValueRef rdl_underlying(LLVMValueRef pointer) {
  return wrap(const_cast<Value *>(getUnderlyingObject(unwrap(pointer), 0)));
}

// The pointer with constant offsets stripped; false if the offset is not constant.
bool rdl_constant_offset(LLVMValueRef pointer, LLVMValueRef *base, int64_t *offset) {
  Value *value = unwrap(pointer);
  auto *inst = dyn_cast<Instruction>(value);
  if (!inst)
    return false;
  const DataLayout &layout = inst->getModule()->getDataLayout();
  APInt bytes(layout.getIndexTypeSizeInBits(value->getType()), 0);
  Value *object = value->stripAndAccumulateConstantOffsets(layout, bytes, true);
  *base = wrap(object);
  *offset = bytes.getSExtValue();
  return isa<AllocaInst>(object);
}

// Whether no other thread and no callee that keeps pointers can know this stack slot. That an access is volatile makes
// its address no better known.
bool rdl_is_private(LLVMValueRef slot) {
  struct Tracker : CaptureTracker {
    bool isCaptured = false;
    void tooManyUses() override { isCaptured = true; }
    Action captured(const Use *use, UseCaptureInfo) override {
      const auto *user = cast<Instruction>(use->getUser());
      if (isa<LoadInst>(user) || (isa<StoreInst>(user) && use->getOperandNo() == StoreInst::getPointerOperandIndex()))
        return Continue;
      isCaptured = true;
      return Stop;
    }
  } tracker;
  PointerMayBeCaptured(unwrap(slot), &tracker);
  return !tracker.isCaptured;
}

bool rdl_is_static_slot(LLVMValueRef slot) {
  auto *alloca = dyn_cast<AllocaInst>(unwrap(slot));
  return alloca && alloca->isStaticAlloca();
}

void *rdl_dominators_new(LLVMValueRef function) { return new Facts(*cast<Function>(unwrap(function))); }
void rdl_dominators_free(void *facts) { delete static_cast<Facts *>(facts); }

bool rdl_dominates(void *facts, LLVMValueRef above, LLVMValueRef below) {
  return static_cast<Facts *>(facts)->tree.dominates(instruction(above), instruction(below));
}

bool rdl_known_nonzero(void *facts, LLVMValueRef pointer, LLVMValueRef at) {
  Instruction *context = instruction(at);
  auto *known = static_cast<Facts *>(facts);
  SimplifyQuery query(context->getModule()->getDataLayout(), &known->tree, &known->assumptions, context);
  return isKnownNonZero(unwrap(pointer), query);
}

// Whether what the phi takes from its predecessor with this number is not null when it comes from there.
bool rdl_nonzero_input(void *facts, LLVMValueRef phi, unsigned number) {
  auto *node = cast<PHINode>(unwrap(phi));
  Value *value = node->getIncomingValue(number);
  Instruction *last = node->getIncomingBlock(number)->getTerminator();
  if (rdl_known_nonzero(facts, wrap(value), wrap(last)))
    return true;
  auto *branch = dyn_cast<BranchInst>(last);
  if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1))
    return false;
  auto *test = dyn_cast<ICmpInst>(branch->getCondition());
  if (!test || !test->isEquality() || test->getOperand(0) != value ||
      !isa<ConstantPointerNull>(test->getOperand(1)))
    return false;
  return branch->getSuccessor(test->getPredicate() == CmpInst::ICMP_EQ ? 1 : 0) == node->getParent();
}

bool rdl_has_invariant_load(LLVMValueRef load) {
  return instruction(load)->hasMetadata(LLVMContext::MD_invariant_load);
}
bool rdl_is_volatile(LLVMValueRef value) { return instruction(value)->isVolatile(); }

// Whether the function holds something that must not be re-executed or re-arranged.
bool rdl_is_unsupported(LLVMValueRef function) {
  auto *body = cast<Function>(unwrap(function));
  if (body->hasFnAttribute(Attribute::Naked) || body->hasFnAttribute(Attribute::ReturnsTwice) ||
      body->isPresplitCoroutine() || body->callsFunctionThatReturnsTwice() ||
      body->hasFnAttribute("raddle-hardened") || body->hasAvailableExternallyLinkage())
    return true;
  for (Instruction &inst : instructions(*body)) {
    if (isa<CallBrInst>(inst) || isa<IndirectBrInst>(inst) || isa<FuncletPadInst>(inst) ||
        isa<CatchSwitchInst>(inst))
      return true;
    if (auto *call = dyn_cast<CallInst>(&inst))
      if (call->isMustTailCall())
        return true;
  }
  return false;
}

// Whether the call may be an invoke with a pad of ours: nothing on the stack for it, no bundles, not a tail position
// promise. An invoke may have a pad that cleans up, but none that catches.
bool rdl_can_be_invoke(LLVMValueRef value) {
  auto *call = dyn_cast<CallBase>(unwrap(value));
  if (!call || call->isInlineAsm() || call->hasOperandBundles() || call->isMustTailCall() ||
      !call->getCalledFunction() || call->getCalledFunction()->isIntrinsic())
    return false;
  if (auto *invoke = dyn_cast<InvokeInst>(call)) {
    const LandingPadInst *pad = invoke->getLandingPadInst();
    if (!pad->isCleanup() || pad->getNumClauses() != 0)
      return false;
  }
  unsigned words = 0, floats = 0;
  for (Value *argument : call->args()) {
    if (argument->getType()->isFloatingPointTy())
      floats++;
    else if (argument->getType()->isPointerTy() ||
             (argument->getType()->isIntegerTy() && argument->getType()->getIntegerBitWidth() <= 64))
      words++;
    else
      return false;
  }
  for (unsigned number = 0; number < call->arg_size(); number++)
    if (call->isByValArgument(number) || call->isInAllocaArgument(number))
      return false;
  return words <= 6 && floats <= 8;
}

// The name of a function as its programmer wrote it, into `text`; its length.
size_t rdl_demangle(const char *name, size_t length, char *text, size_t size) {
  std::string readable = demangle(std::string_view(name, length));
  size_t kept = std::min(readable.size(), size);
  std::copy_n(readable.data(), kept, text);
  return kept;
}

// Whether the function is one of the C library that LLVM knows.
bool rdl_is_library_function(LLVMValueRef function) {
  auto *callee = cast<Function>(unwrap(function));
  TargetLibraryInfoImpl known(callee->getParent()->getTargetTriple());
  LibFunc which;
  return known.getLibFunc(callee->getName(), which);
}

// Bytes that a store writes.
uint64_t rdl_store_size(LLVMValueRef store) {
  auto *inst = cast<StoreInst>(unwrap(store));
  TypeSize size = inst->getModule()->getDataLayout().getTypeStoreSize(inst->getValueOperand()->getType());
  return size.isScalable() ? UINT64_MAX : size.getFixedValue();
}

// Bytes of a stack slot.
uint64_t rdl_slot_size(LLVMValueRef slot) {
  auto *alloca = cast<AllocaInst>(unwrap(slot));
  std::optional<TypeSize> size = alloca->getAllocationSize(alloca->getModule()->getDataLayout());
  return !size || size->isScalable() ? UINT64_MAX : size->getFixedValue();
}

// The pointer without constant offsets.
LLVMValueRef rdl_strip_constant(LLVMValueRef pointer, LLVMModuleRef module, int64_t *offset) {
  const DataLayout &layout = unwrap(module)->getDataLayout();
  Value *value = unwrap(pointer);
  APInt bytes(layout.getIndexTypeSizeInBits(value->getType()), 0);
  Value *object = value->stripAndAccumulateConstantOffsets(layout, bytes, true);
  *offset = bytes.getSExtValue();
  return wrap(object);
}

// Whether nothing but the loads, stores and copies in this module can reach a variable.
bool rdl_is_closed_variable(LLVMValueRef global) {
  auto *variable = dyn_cast<GlobalVariable>(unwrap(global));
  if (!variable || !variable->hasLocalLinkage() || variable->isThreadLocal())
    return false;
  SmallVector<const Value *, 16> work = {variable};
  while (!work.empty()) {
    for (const Use &use : work.pop_back_val()->uses()) {
      const User *user = use.getUser();
      if (isa<LoadInst>(user) || isa<ICmpInst>(user))
        continue;
      if (isa<StoreInst>(user) && use.getOperandNo() == StoreInst::getPointerOperandIndex())
        continue;
      if (isa<GEPOperator>(user) && use.getOperandNo() == 0)
        work.push_back(user);
      else if (!isa<MemIntrinsic>(user))
        return false;
    }
  }
  return true;
}

// Whether nothing but calls of lock functions in this module can reach a lock.
bool rdl_is_closed_lock(LLVMValueRef global) {
  auto *variable = dyn_cast<GlobalVariable>(unwrap(global));
  if (!variable || !variable->hasLocalLinkage())
    return false;
  auto isLockFunction = [](const Function *callee) {
    if (!callee || !callee->isDeclaration())
      return false;
    StringRef name = callee->getName();
    return name.starts_with("pthread_mutex_") || name.starts_with("pthread_rwlock_") ||
           name.starts_with("pthread_cond_") || name.starts_with("pthread_spin_") || name.starts_with("mtx_") ||
           name.starts_with("cnd_");
  };
  SmallVector<const Value *, 16> work = {variable};
  while (!work.empty()) {
    for (const Use &use : work.pop_back_val()->uses()) {
      const User *user = use.getUser();
      if (auto *gep = dyn_cast<GEPOperator>(user); gep && use.getOperandNo() == 0 && gep->hasAllConstantIndices())
        work.push_back(user);
      else if (auto *call = dyn_cast<CallBase>(user); !call || !isLockFunction(call->getCalledFunction()))
        return false;
    }
  }
  return true;
}

// Whether the function may be entered by callers that this module does not show.
bool rdl_is_open(LLVMValueRef function) {
  auto *body = cast<Function>(unwrap(function));
  return !body->hasLocalLinkage() || body->hasAddressTaken();
}

// Whether no other definition may take the place of this one.
bool rdl_is_exact(LLVMValueRef function) { return !cast<Function>(unwrap(function))->isInterposable(); }

// Whether the code that is called is the code here, and not an equivalent copy from another module.
bool rdl_is_the_definition(LLVMValueRef function) { return cast<Function>(unwrap(function))->isDefinitionExact(); }

// Library functions that keep no pointer: where optimisation has not said so, we do.
void rdl_keeps_no_pointers(LLVMValueRef function) {
  auto *callee = cast<Function>(unwrap(function));
  for (Argument &argument : callee->args())
    if (argument.getType()->isPointerTy() && !argument.hasAttribute(Attribute::Captures))
      argument.addAttr(Attribute::getWithCaptureInfo(callee->getContext(), CaptureInfo::retOnly()));
}

LLVMBasicBlockRef rdl_split_before(LLVMValueRef value, const char *name) {
  Instruction *inst = instruction(value);
  return wrap(SplitBlock(inst->getParent(), inst->getIterator(), static_cast<DominatorTree *>(nullptr), nullptr,
                         nullptr, name));
}

LLVMBasicBlockRef rdl_to_invoke(LLVMValueRef value, LLVMBasicBlockRef pad) {
  auto *call = cast<CallInst>(unwrap(value));
  call->removeFnAttr(Attribute::NoUnwind);
  call->setTailCallKind(CallInst::TCK_None);
  return wrap(changeToInvokeAndSplitBasicBlock(call, unwrap(pad)));
}

// A landing pad of its own for a call or invoke in a Rust function. The marker's clause tells the runtime what it is
// for; to Rust it is a pad that cleans up (rdl_register_faults sees to that). Panics bring an exception, and go on to
// what was cleaned up before or to the next frame; the runtime brings none. Returns the block for the latter.
LLVMBasicBlockRef rdl_rust_pad(LLVMValueRef value, LLVMValueRef marker, LLVMBasicBlockRef *pad) {
  auto *call = cast<CallBase>(unwrap(value));
  Function *function = call->getFunction();
  LandingPadInst *landing;
  Instruction *panics;
  if (auto *invoke = dyn_cast<InvokeInst>(call)) {
    SmallVector<BasicBlock *, 2> blocks;
    SplitLandingPadPredecessors(invoke->getUnwindDest(), invoke->getParent(), ".raddle", ".others", blocks);
    landing = invoke->getLandingPadInst();
    panics = landing->getParent()->getTerminator();
  } else {
    IRBuilder<> builder(BasicBlock::Create(function->getContext(), "raddle.pad", function));
    Type *type = StructType::get(builder.getPtrTy(), builder.getInt32Ty());
    landing = builder.CreateLandingPad(type, 1);
    panics = builder.CreateResume(landing);
  }
  landing->setCleanup(true);
  landing->addClause(cast<Constant>(unwrap(marker)));
  BasicBlock *block = landing->getParent();
  BasicBlock *goesOn = block->splitBasicBlock(panics, "raddle.panic");
  BasicBlock *again = BasicBlock::Create(function->getContext(), "raddle.again", function);
  IRBuilder<> builder(block->getTerminator());
  Value *exception = builder.CreateExtractValue(landing, 0);
  builder.CreateCondBr(builder.CreateIsNull(exception), again, goesOn);
  block->getTerminator()->eraseFromParent();
  *pad = wrap(block);
  return wrap(again);
}

// Rewrites every use that its definition no longer dominates. On the paths where the definition did not run, the value
// is never read: the token says so.
void rdl_repair_ssa(LLVMValueRef function) {
  auto *body = cast<Function>(unwrap(function));
  // The result of an invoke exists on its normal edge only: give that edge a block of its own.
  for (BasicBlock &block : make_early_inc_range(*body))
    if (auto *invoke = dyn_cast<InvokeInst>(block.getTerminator()))
      if (!invoke->use_empty() && !invoke->getNormalDest()->getSinglePredecessor())
        SplitEdge(&block, invoke->getNormalDest());
  DominatorTree tree(*body);
  SmallVector<std::pair<Instruction *, SmallVector<Use *, 4>>, 16> broken;
  for (Instruction &inst : instructions(*body)) {
    SmallVector<Use *, 4> uses;
    for (Use &use : inst.uses())
      if (tree.isReachableFromEntry(cast<Instruction>(use.getUser())->getParent()) && !tree.dominates(&inst, use))
        uses.push_back(&use);
    if (!uses.empty())
      broken.push_back({&inst, std::move(uses)});
  }
  for (auto &[inst, uses] : broken) {
    SSAUpdater updater;
    updater.Initialize(inst->getType(), inst->getName());
    if (auto *invoke = dyn_cast<InvokeInst>(inst)) {
      updater.AddAvailableValue(inst->getParent(), PoisonValue::get(inst->getType()));
      updater.AddAvailableValue(invoke->getNormalDest(), inst);
    } else {
      updater.AddAvailableValue(inst->getParent(), inst);
    }
    for (Use *use : uses)
      updater.RewriteUse(*use);
  }
}

void rdl_promote(LLVMValueRef function, LLVMValueRef *slots, size_t count) {
  auto *body = cast<Function>(unwrap(function));
  DominatorTree tree(*body);
  SmallVector<AllocaInst *, 16> allocas;
  for (size_t i = 0; i < count; i++) {
    auto *slot = cast<AllocaInst>(unwrap(slots[i]));
    if (isAllocaPromotable(slot))
      allocas.push_back(slot);
  }
  if (!allocas.empty())
    PromoteMemToReg(allocas, tree);
}

void rdl_cold_edge(LLVMValueRef branch, bool first_is_cold) {
  auto *inst = instruction(branch);
  MDBuilder builder(inst->getContext());
  uint32_t hot = 1u << 20;
  inst->setMetadata(LLVMContext::MD_prof,
                    first_is_cold ? builder.createBranchWeights(1, hot) : builder.createBranchWeights(hot, 1));
}

// The function is about to read, wait and perhaps leave through a failing edge.
void rdl_mark_changed(LLVMValueRef function, bool may_unwind) {
  auto *body = cast<Function>(unwrap(function));
  body->removeFnAttr(Attribute::Memory);
  body->removeFnAttr(Attribute::WillReturn);
  body->removeFnAttr(Attribute::NoSync);
  body->removeFnAttr(Attribute::Speculatable);
  body->addFnAttr("raddle-hardened");
  if (may_unwind) {
    body->removeFnAttr(Attribute::NoUnwind);
    body->setUWTableKind(UWTableKind::Async);
  }
  if (!body->getEntryCount())
    body->setEntryCount(1000);
}

// Notes that a block is the failing edge of a site, for faults.cpp: its number, its data, and how many callers to look at.
void rdl_mark_failing(LLVMValueRef terminator, unsigned number, LLVMValueRef data, unsigned levels) {
  Instruction *inst = instruction(terminator);
  LLVMContext &context = inst->getContext();
  Type *word = Type::getInt32Ty(context);
  Metadata *parts[] = {ConstantAsMetadata::get(ConstantInt::get(word, number)),
                       ConstantAsMetadata::get(cast<Constant>(unwrap(data))),
                       ConstantAsMetadata::get(ConstantInt::get(word, levels))};
  inst->setMetadata("raddle.failing", MDNode::get(context, parts));
}

void rdl_allow_faults(LLVMValueRef function) { cast<Function>(unwrap(function))->addFnAttr("raddle-faults"); }

// Every register but r11 survives the call.
void rdl_keeps_registers(LLVMValueRef call) { cast<CallInst>(unwrap(call))->setCallingConv(CallingConv::PreserveMost); }

// Calls and other uses of a function that is only declared here go to another one.
bool rdl_redirect(LLVMModuleRef module, const char *from, const char *to) {
  Function *function = unwrap(module)->getFunction(from);
  if (!function || !function->isDeclaration() || function->use_empty())
    return false;
  FunctionCallee other = unwrap(module)->getOrInsertFunction(to, function->getFunctionType());
  function->replaceAllUsesWith(other.getCallee());
  return true;
}

// The distance of a pointer from the value it is computed from, if constant.
bool rdl_offset_from(LLVMValueRef pointer, LLVMValueRef base, LLVMModuleRef module, int64_t *offset) {
  const DataLayout &layout = unwrap(module)->getDataLayout();
  Value *value = unwrap(pointer);
  APInt bytes(layout.getIndexTypeSizeInBits(value->getType()), 0);
  Value *object = value->stripAndAccumulateConstantOffsets(layout, bytes, true);
  *offset = bytes.getSExtValue();
  return object == unwrap(base);
}

// The place of an instruction, or with `depth` of the call into which it was inlined that many levels up.
bool rdl_place(LLVMValueRef value, unsigned depth, unsigned *line, const char **folder, size_t *folder_length,
               const char **file, size_t *file_length) {
  const DILocation *location = instruction(value)->getDebugLoc().get();
  for (; location && depth > 0; depth--)
    location = location->getInlinedAt();
  if (!location)
    return false;
  auto *scope = location->getScope();
  *line = location->getLine();
  *folder = scope->getDirectory().data();
  *folder_length = scope->getDirectory().size();
  *file = scope->getFilename().data();
  *file_length = scope->getFilename().size();
  return true;
}

// Calls that may not be inlined need a location when their function has debug information.
void rdl_set_location_of(LLVMValueRef target, LLVMValueRef from, LLVMValueRef function) {
  auto *inst = instruction(target);
  if (DebugLoc location = instruction(from)->getDebugLoc()) {
    inst->setDebugLoc(location);
    return;
  }
  if (auto *program = cast<Function>(unwrap(function))->getSubprogram())
    inst->setDebugLoc(DILocation::get(inst->getContext(), 0, 0, program));
}

bool rdl_strip_debug(LLVMModuleRef module) { return StripDebugInfo(*unwrap(module)); }

bool rdl_verify(LLVMModuleRef module) {
  std::string trouble;
  raw_string_ostream stream(trouble);
  bool is_broken = verifyModule(*unwrap(module), &stream);
  if (is_broken)
    errs() << StringRef(trouble).substr(0, 1000) << "\n";
  return !is_broken;
}

void rdl_returns_twice(LLVMValueRef call) {
  auto *inst = cast<CallInst>(unwrap(call));
  inst->addFnAttr(Attribute::ReturnsTwice);
  if (Function *callee = inst->getCalledFunction())
    callee->addFnAttr(Attribute::ReturnsTwice);
}
}
