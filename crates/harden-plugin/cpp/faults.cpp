// The access itself is the check: after code generation, a comparison of a pointer with the bound is removed when the
// access it protects follows at once. A pointer below the bound then faults there. A table tells the runtime's signal
// handler which site has failed and where re-execution begins; if it does not re-execute, nothing has happened yet that
// the original program would not have done. What cannot be shown to be the same keeps its comparison.
//
// Between the removed comparison and the access nothing may happen that re-execution could notice: no store, no call,
// no change of a register that it needs.
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/PseudoSourceValue.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/MC/MCContext.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace {

// How far behind the comparison the access may be.
constexpr unsigned DISTANCE_MAX = 40;

// Beyond this, an invalid pointer might reach memory that is there.
constexpr int64_t DISPLACEMENT_MAX = 32768;

// In place of a register in the table; known to the runtime.
constexpr unsigned BY_ADDRESS = 16, BY_CALL = 17;

// Condition codes of x86, as branches hold them.
enum Condition : int64_t { BELOW = 2, ABOVE_OR_EQUAL = 3, BELOW_OR_EQUAL = 6, ABOVE = 7 };

// The site whose failing edge a block belongs to, as the pass over the IR noted it: number, data, callers to look at.
const MDNode *siteOf(const MachineBasicBlock &block) {
  const BasicBlock *origin = block.getBasicBlock();
  return origin && origin->getTerminator() ? origin->getTerminator()->getMetadata("raddle.failing") : nullptr;
}

// A comparison of ours at the end of a block.
struct Check {
  const MDNode *site;
  MachineInstr *compare;
  Register pointer;
  int64_t bound;
  MachineBasicBlock *failing;
  MachineBasicBlock *passed;
  // Where re-execution in this function begins, if it does.
  MachineBasicBlock *again;
};

class FaultChecks : public MachineFunctionPass {
public:
  static char ID;
  FaultChecks() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "raddle: accesses as checks"; }

  bool runOnMachineFunction(MachineFunction &function) override {
    bool cleansUp = cleanUpFirst(function);
    if (!function.getFunction().hasFnAttribute("raddle-faults"))
      return cleansUp;
    target = function.getSubtarget().getInstrInfo();
    registers = function.getSubtarget().getRegisterInfo();
    struct Found {
      Check check;
      MachineInstr *access;
      unsigned how;
    };
    std::vector<Found> found;
    SmallVector<MachineBasicBlock *, 32> blocks(make_pointer_range(function));
    SmallPtrSet<MachineBasicBlock *, 32> gone;
    for (MachineBasicBlock *block : blocks) {
      std::optional<Check> check = gone.contains(block) ? std::nullopt : checkOf(*block);
      if (!check)
        continue;
      auto [access, how] = accessOf(*block, *check);
      if (!access)
        continue;
      found.push_back({*check, access, how});
      gone.insert(check->failing);
      remove(*block, *check);
    }
    // Labels come last, when no instruction that could bear one is removed any more.
    std::string entries;
    for (Found &one : found)
      entries += entryOf(one.check, *one.access, one.how, unsigned(&one - found.data()));
    if (!found.empty())
      write(function.back(), entries);
    return cleansUp || !found.empty();
  }

private:
  const TargetInstrInfo *target = nullptr;
  const TargetRegisterInfo *registers = nullptr;

  // Rust's personality looks at the first action of a pad only, and takes a type for a handler at which panics end.
  // LLVM puts the cleaning up last. With the order reversed, the pads of ours are cleanups to Rust, and the runtime
  // still finds the type behind.
  static bool cleanUpFirst(MachineFunction &function) {
    const Function &origin = function.getFunction();
    if (!origin.hasPersonalityFn() || origin.getPersonalityFn()->getName() != "rust_eh_personality")
      return false;
    bool changed = false;
    for (const LandingPadInfo &pad : function.getLandingPads()) {
      if (pad.TypeIds.size() != 2 || pad.TypeIds[0] != 0 || pad.TypeIds[1] <= 0)
        continue;
      const GlobalValue *type = function.getTypeInfos()[pad.TypeIds[1] - 1];
      if (!type || !type->getName().starts_with("raddle_harden_"))
        continue;
      LandingPadInfo &ours = function.getOrCreateLandingPadInfo(pad.LandingPadBlock);
      std::swap(ours.TypeIds[0], ours.TypeIds[1]);
      changed = true;
    }
    return changed;
  }

  StringRef name(const MachineInstr &inst) const { return target->getName(inst.getOpcode()); }

  std::optional<Check> checkOf(MachineBasicBlock &block) const {
    MachineBasicBlock *yes = nullptr, *no = nullptr;
    SmallVector<MachineOperand, 4> condition;
    if (target->analyzeBranch(block, yes, no, condition, /*AllowModify=*/false) || condition.size() != 1 || !yes)
      return std::nullopt;
    if (!no)
      no = block.getNextNode();
    if (!no || yes == no || !condition[0].isImm())
      return std::nullopt;
    int64_t code = condition[0].getImm();
    bool failsIfTaken = code == BELOW || code == BELOW_OR_EQUAL;
    if (!failsIfTaken && code != ABOVE && code != ABOVE_OR_EQUAL)
      return std::nullopt;
    Check check = {};
    check.failing = failsIfTaken ? yes : no;
    check.passed = failsIfTaken ? no : yes;
    check.site = siteOf(*check.failing);
    if (!check.site || !isAlone(block, check) || hasFlags(*check.passed) || !findCompare(block, code, check))
      return std::nullopt;
    if (check.again && (!firstOf(*check.again) || hasFlags(*check.again) || !isTransparent(check)))
      return std::nullopt;
    return check;
  }

  // Only the comparison leads into the failing edge, and only these two lead to the access; finds the way back.
  bool isAlone(const MachineBasicBlock &block, Check &check) const {
    if (check.passed == &block || check.failing->pred_size() != 1 || check.failing->succ_size() > 2)
      return false;
    for (const MachineBasicBlock *pred : check.passed->predecessors())
      if (pred != &block && pred != check.failing)
        return false;
    for (MachineBasicBlock *succ : check.failing->successors())
      if (succ != check.passed)
        check.again = succ;
    bool hasTwo = check.failing->succ_size() == 2;
    return check.failing->isSuccessor(check.passed) && hasTwo == (check.again != nullptr);
  }

  // Whether the failing edge leaves all registers that re-execution needs as they were.
  bool isTransparent(const Check &check) const {
    DenseMap<Register, Register> holds;
    auto content = [&](Register reg) { return holds.contains(reg) ? holds[reg] : reg; };
    for (const MachineInstr &inst : *check.failing) {
      if (inst.getFlag(MachineInstr::FrameSetup) || inst.getFlag(MachineInstr::FrameDestroy) ||
          (inst.mayStore() && !inst.isCall() && !inst.isInlineAsm()))
        return false;
      auto copy = target->isCopyInstr(inst);
      Register copied = copy ? content(copy->Source->getReg()) : Register();
      for (const auto &live : check.again->liveins())
        if (inst.modifiesRegister(live.PhysReg, registers))
          holds[live.PhysReg] = Register();
      if (copy) {
        for (auto &[reg, kept] : holds)
          if (registers->regsOverlap(reg, copy->Destination->getReg()))
            kept = Register();
        holds[copy->Destination->getReg()] = copied;
      } else {
        for (auto &[reg, kept] : holds)
          if (inst.modifiesRegister(reg, registers))
            kept = Register();
      }
    }
    return all_of(check.again->liveins(),
                  [&](const auto &live) { return content(live.PhysReg) == Register(live.PhysReg); });
  }

  bool isFlags(MCRegister reg) const { return StringRef(registers->getName(reg)) == "EFLAGS"; }
  bool hasFlags(const MachineBasicBlock &block) const {
    return any_of(block.liveins(), [&](const auto &live) { return isFlags(live.PhysReg); });
  }
  bool touchesFlags(const MachineInstr &inst) const {
    return inst.isCall() || inst.isInlineAsm() || any_of(inst.operands(), [&](const MachineOperand &operand) {
      return operand.isReg() && operand.getReg().isPhysical() && isFlags(operand.getReg().asMCReg());
    });
  }

  bool findCompare(MachineBasicBlock &block, int64_t code, Check &check) const {
    for (MachineBasicBlock::iterator at = block.getFirstTerminator(); at != block.begin();) {
      MachineInstr &inst = *--at;
      if (!touchesFlags(inst))
        continue;
      if (!name(inst).starts_with("CMP64ri") || !inst.getOperand(0).isReg() || !inst.getOperand(1).isImm())
        return false;
      check.compare = &inst;
      check.pointer = inst.getOperand(0).getReg();
      check.bound = inst.getOperand(1).getImm();
      if (code == BELOW_OR_EQUAL || code == ABOVE)
        check.bound++;
      // The pointer must still be what was compared.
      for (++at; at != block.getFirstTerminator(); ++at)
        if (at->modifiesRegister(check.pointer, registers))
          return false;
      return check.bound > 0;
    }
    return false;
  }

  // Registers that hold the pointer, and registers that hold it with something added.
  struct Holders {
    SmallVector<Register, 4> same, derived;
    void lose(const MachineInstr &inst, const TargetRegisterInfo *registers) {
      auto isLost = [&](Register reg) { return inst.modifiesRegister(reg, registers); };
      erase_if(same, isLost);
      erase_if(derived, isLost);
    }
  };

  // The register to which an instruction adds something; the operands behind it are what is added.
  bool isAddition(const MachineInstr &inst) const {
    StringRef opcode = name(inst);
    return opcode == "LEA64r" || opcode == "INC64r" || opcode == "DEC64r" || opcode.starts_with("ADD64r") ||
           opcode.starts_with("SUB64ri");
  }

  // Whether the sum holds the pointer once, unscaled.
  bool addsOneOf(const MachineInstr &inst, ArrayRef<Register> pointers) const {
    auto isIn = [&](unsigned number) {
      const MachineOperand &operand = inst.getOperand(number);
      return operand.isReg() && is_contained(pointers, operand.getReg());
    };
    if (name(inst) == "LEA64r")
      return isIn(1) || (isIn(3) && inst.getOperand(2).getImm() == 1);
    for (unsigned number = 1; number < inst.getDesc().getNumOperands(); number++)
      if (isIn(number))
        return true;
    return false;
  }

  Holders holders(MachineBasicBlock &block, const Check &check) const {
    Holders found = {{check.pointer}, {}};
    SmallVector<Register, 16> spoilt;
    auto isIntact = [&](Register reg) {
      return none_of(spoilt, [&](Register lost) { return registers->regsOverlap(lost, reg); });
    };
    unsigned distance = 0;
    for (MachineBasicBlock::iterator at = block.getFirstTerminator(); at != block.begin() && distance < DISTANCE_MAX;
         distance++) {
      MachineInstr &inst = *--at;
      SmallVector<Register, 4> intact;
      copy_if(found.same, std::back_inserter(intact), isIntact);
      if (auto copy = target->isCopyInstr(inst)) {
        Register to = copy->Destination->getReg(), from = copy->Source->getReg();
        if (is64(to) && is64(from) && isIntact(to) && isIntact(from) &&
            is_contained(intact, to) != is_contained(intact, from))
          found.same.push_back(is_contained(intact, to) ? from : to);
      } else if (isAddition(inst) && addsOneOf(inst, intact)) {
        Register to = inst.getOperand(0).getReg();
        if (isIntact(to) && !is_contained(intact, to))
          found.derived.push_back(to);
      }
      for (const MachineOperand &operand : inst.operands()) {
        if (operand.isRegMask())
          return found;
        if (operand.isReg() && operand.isDef() && operand.getReg().isPhysical())
          spoilt.push_back(operand.getReg());
      }
      if (!isIntact(check.pointer))
        return found;
    }
    return found;
  }

  bool is64(Register reg) const {
    return reg.isPhysical() && registers->getMinimalPhysRegClass(reg) &&
           registers->getRegSizeInBits(*registers->getMinimalPhysRegClass(reg)) == 64 &&
           registers->getEncodingValue(reg.asMCReg()) < 16;
  }

  // The access that faults if the pointer is below the bound, and how the handler knows that it did.
  std::pair<MachineInstr *, unsigned> accessOf(MachineBasicBlock &block, const Check &check) const {
    Holders pointers = holders(block, check);
    MachineInstr *obstacle = nullptr;
    unsigned distance = 0;
    for (MachineInstr &inst : *check.passed) {
      if (inst.isDebugOrPseudoInstr() || inst.isKill())
        continue;
      if (distance++ == DISTANCE_MAX)
        break;
      if (std::optional<unsigned> how = faultOf(inst, pointers)) {
        if (obstacle && !moveAbove(inst, *obstacle, check.pointer, *how))
          break;
        return {&inst, *how};
      }
      if (!isHarmless(inst, check)) {
        if (!isMovable(inst))
          break;
        if (!obstacle)
          obstacle = &inst;
      }
      auto copy = target->isCopyInstr(inst);
      bool isSame = copy && is_contained(pointers.same, copy->Source->getReg());
      bool isDerived = isAddition(inst) && (addsOneOf(inst, pointers.same) || addsOneOf(inst, pointers.derived));
      pointers.lose(inst, registers);
      if (isSame && is64(copy->Destination->getReg()))
        pointers.same.push_back(copy->Destination->getReg());
      if (isDerived)
        pointers.derived.push_back(inst.getOperand(0).getReg());
    }
    return {nullptr, 0};
  }

  // How a fault of this instruction tells that the pointer was below the bound: the number of the register that holds
  // it, BY_ADDRESS if only the sum is left, BY_CALL for a call to it.
  std::optional<unsigned> faultOf(const MachineInstr &inst, const Holders &pointers) const {
    if (name(inst) == "CALL64r" && is_contained(pointers.same, inst.getOperand(0).getReg()) &&
        !inst.getPostInstrSymbol())
      return BY_CALL;
    if (!inst.mayLoadOrStore() || inst.isInlineAsm() || inst.isBundled() || inst.getFlag(MachineInstr::FrameSetup) ||
        inst.getFlag(MachineInstr::FrameDestroy) || inst.getDesc().getNumOperands() < 5)
      return std::nullopt;
    std::optional<ExtAddrMode> mode = target->getAddrModeFromMemoryOp(inst, registers);
    if (!mode || mode->Displacement < -DISPLACEMENT_MAX || mode->Displacement > DISPLACEMENT_MAX)
      return std::nullopt;
    for (Register reg : {mode->BaseReg, mode->Scale == 1 ? mode->ScaledReg : Register()}) {
      if (reg.isValid() && is_contained(pointers.same, reg))
        return registers->getEncodingValue(reg.asMCReg());
      if (reg.isValid() && is_contained(pointers.derived, reg))
        return BY_ADDRESS;
    }
    return std::nullopt;
  }

  // Whether a read may be moved above this instruction as far as memory is concerned.
  bool isMovable(const MachineInstr &inst) const {
    if (inst.isCall() || inst.isTerminator() || inst.hasUnmodeledSideEffects() || inst.isInlineAsm() ||
        inst.isPosition() || inst.getFlag(MachineInstr::FrameSetup) || inst.getFlag(MachineInstr::FrameDestroy) ||
        inst.hasOrderedMemoryRef())
      return false;
    // A spilled register is nobody else's memory.
    return !inst.mayStore() || all_of(inst.memoperands(), [](const MachineMemOperand *operand) {
      return operand->getPseudoValue() && operand->getPseudoValue()->kind() == PseudoSourceValue::FixedStack;
    });
  }

  // Moves a read up to in front of `obstacle`, if nothing in between depends on it or it on that. It may have to use the
  // pointer where it was compared instead of a copy.
  bool moveAbove(MachineInstr &access, MachineInstr &obstacle, Register pointer, unsigned &how) const {
    if (how < BY_ADDRESS && how != registers->getEncodingValue(pointer.asMCReg()))
      for (MachineOperand &operand : access.operands())
        if (operand.isReg() && operand.isUse() && !operand.isImplicit() && !operand.isTied() && is64(operand.getReg()) &&
            registers->getEncodingValue(operand.getReg().asMCReg()) == how && access.getNumExplicitDefs() <= 1 &&
            isOnlyUse(access, operand.getReg())) {
          Register copy = operand.getReg();
          operand.setReg(pointer);
          if (moveUp(access, obstacle)) {
            how = registers->getEncodingValue(pointer.asMCReg());
            return true;
          }
          operand.setReg(copy);
          return false;
        }
    return moveUp(access, obstacle);
  }

  static bool isOnlyUse(const MachineInstr &inst, Register reg) {
    return count_if(inst.operands(), [&](const MachineOperand &operand) {
             return operand.isReg() && operand.isUse() && operand.getReg() == reg;
           }) == 1;
  }

  bool moveUp(MachineInstr &access, MachineInstr &obstacle) const {
    if (access.mayStore() || access.isCall() || access.hasOrderedMemoryRef() || access.hasUnmodeledSideEffects() ||
        access.getPreInstrSymbol())
      return false;
    for (MachineBasicBlock::iterator at = obstacle.getIterator(); &*at != &access; ++at) {
      if (!at->isDebugOrPseudoInstr() && !at->isKill() && (!isMovable(*at) || depends(access, *at) || depends(*at, access)))
        return false;
      if (at->getPreInstrSymbol() || at->getPostInstrSymbol())
        return false;
    }
    access.moveBefore(&obstacle);
    return true;
  }

  // Whether `later` reads or writes what `earlier` writes. Kill flags have no reader any more.
  bool depends(const MachineInstr &later, const MachineInstr &earlier) const {
    return any_of(earlier.operands(), [&](const MachineOperand &operand) {
      return operand.isRegMask() ||
             (operand.isReg() && operand.isDef() && operand.getReg().isPhysical() &&
              (later.modifiesRegister(operand.getReg(), registers) || later.readsRegister(operand.getReg(), registers)));
    });
  }

  bool isHarmless(const MachineInstr &inst, const Check &check) const {
    if (inst.isCall() || inst.isTerminator() || inst.mayStore() || inst.hasUnmodeledSideEffects() ||
        inst.isInlineAsm() || inst.isPosition() || inst.getFlag(MachineInstr::FrameSetup) ||
        inst.getFlag(MachineInstr::FrameDestroy))
      return false;
    for (const MachineOperand &operand : inst.operands()) {
      if (operand.isRegMask())
        return false;
      if (!operand.isReg() || !operand.isDef() || !operand.getReg().isPhysical() ||
          isFlags(operand.getReg().asMCReg()))
        continue;
      if (StringRef(registers->getName(operand.getReg())) == "RSP")
        return false;
      if (check.again)
        for (const auto &live : check.again->liveins())
          if (registers->regsOverlap(operand.getReg(), live.PhysReg))
            return false;
    }
    return true;
  }

  // The instruction that runs first when a block is entered; empty blocks fall through.
  static MachineInstr *firstOf(MachineBasicBlock &block) {
    for (MachineBasicBlock *at = &block; at; at = at->getNextNode())
      if (!at->empty())
        return &*at->begin();
    return nullptr;
  }

  // An entry of the table; laid out as `struct fault` of the runtime.
  std::string entryOf(const Check &check, MachineInstr &access, unsigned how, unsigned number) const {
    MachineFunction &function = *access.getMF();
    std::string tag = std::to_string(function.getFunctionNumber()) + "_" + std::to_string(number);
    std::string at = ".Lraddle_fault" + tag;
    if (how == BY_CALL)
      access.setPostInstrSymbol(function, function.getContext().getOrCreateSymbol(at));
    else
      at = label(access, at);
    std::string again = check.again ? label(*firstOf(*check.again), ".Lraddle_again" + tag) + "-." : "0";
    auto *data = mdconst::extract<GlobalVariable>(check.site->getOperand(1));
    std::string levels = std::to_string(mdconst::extract<ConstantInt>(check.site->getOperand(2))->getZExtValue());
    return "\n\t.long " + at + "-.\n\t.long " + again + "\n\t.long " + function.getTarget().getSymbol(data)->getName().str() +
           "-.\n\t.long " + std::to_string(check.bound) + "\n\t.short " + std::to_string(how) + ", " + levels +
           (levels == "0" ? "" : "\n\t.reloc ., R_X86_64_NONE, raddle_harden_unwind");
  }

  // The table goes and stays with the code, in whose section the label in front of it is, and has the runtime linked.
  // The part that looks into callers, and with it the unwinder, is only linked for sites that may have prepared ones.
  void write(MachineBasicBlock &block, const std::string &entries) const {
    MachineFunction &function = *block.getParent();
    std::string home = ".Lraddle_faults" + std::to_string(function.getFunctionNumber());
    std::string text = home + ":\n\t.pushsection raddle_faults,\"ao?\",@progbits," + home + entries +
                       "\n\t.reloc ., R_X86_64_NONE, raddle_harden_add_faults\n\t.popsection";
    BuildMI(block, block.begin(), DebugLoc(), target->get(TargetOpcode::INLINEASM))
        .addExternalSymbol(function.createExternalSymbolName(text))
        .addImm(InlineAsm::Extra_HasSideEffects);
  }

  static std::string label(MachineInstr &inst, const std::string &wanted) {
    MachineFunction &function = *inst.getMF();
    if (MCSymbol *known = inst.getPreInstrSymbol())
      return known->getName().str();
    inst.setPreInstrSymbol(function, function.getContext().getOrCreateSymbol(wanted));
    return wanted;
  }

  void remove(MachineBasicBlock &block, const Check &check) const {
    DebugLoc location = check.compare->getDebugLoc();
    check.compare->eraseFromParent();
    target->removeBranch(block);
    if (!block.isLayoutSuccessor(check.passed))
      target->insertBranch(block, check.passed, nullptr, {}, location);
    block.removeSuccessor(check.failing);
    while (!check.failing->succ_empty())
      check.failing->removeSuccessor(check.failing->succ_begin());
    // The fault is the edge.
    if (check.again && !block.isSuccessor(check.again))
      block.addSuccessorWithoutProb(check.again);
    check.failing->eraseFromParent();
  }
};

char FaultChecks::ID = 0;

} // namespace

// From here on, whatever code this process generates passes the pass above.
extern "C" void rdl_register_faults() {
  static RegisterTargetPassConfigCallback registration(
      [](TargetMachine &machine, PassManagerBase &, TargetPassConfig *config) {
        const Triple &triple = machine.getTargetTriple();
        if (config && triple.getArch() == Triple::x86_64 && triple.isOSLinux())
          config->insertPass(&FuncletLayoutID, new FaultChecks());
      });
}
