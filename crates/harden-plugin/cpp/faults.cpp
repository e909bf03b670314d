// The access itself is the check: after code generation, a comparison of a pointer with the bound is removed when the
// access it protects follows at once. A pointer below the bound then faults there, and a table tells the runtime's
// signal handler where the failing edge begins. What cannot be shown to be the same keeps its comparison.
//
// Between the removed comparison and the access nothing may happen that the failing edge could notice: no store, no
// call, no change of a register that is live there.
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
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

// Condition codes of x86, as branches hold them.
enum Condition : int64_t { BELOW = 2, ABOVE_OR_EQUAL = 3, BELOW_OR_EQUAL = 6, ABOVE = 7 };

// The site whose failing edge a block belongs to: what the pass over the IR noted, or for a block without origin, that of
// all its predecessors.
const MDNode *siteOf(const MachineBasicBlock &block, unsigned depth = 3) {
  if (const BasicBlock *origin = block.getBasicBlock())
    return origin->getTerminator() ? origin->getTerminator()->getMetadata("raddle.failing") : nullptr;
  if (depth == 0 || block.pred_empty())
    return nullptr;
  const MDNode *site = siteOf(**block.pred_begin(), depth - 1);
  bool agree = all_of(block.predecessors(),
                      [&](const MachineBasicBlock *pred) { return siteOf(*pred, depth - 1) == site; });
  return agree ? site : nullptr;
}

// A comparison of ours at the end of a block.
struct Check {
  MachineInstr *compare;
  Register pointer;
  int64_t bound;
  MachineBasicBlock *failing;
  MachineBasicBlock *passed;
};

class FaultChecks : public MachineFunctionPass {
public:
  static char ID;
  FaultChecks() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "raddle: accesses as checks"; }

  bool runOnMachineFunction(MachineFunction &function) override {
    if (!function.getFunction().hasFnAttribute("raddle-faults"))
      return false;
    target = function.getSubtarget().getInstrInfo();
    registers = function.getSubtarget().getRegisterInfo();
    unsigned number = 0;
    std::string entries;
    MachineBasicBlock *home = nullptr;
    for (MachineBasicBlock &block : function)
      if (std::optional<Check> check = checkOf(block))
        if (auto [access, pointer] = accessOf(block, *check); access) {
          entries += entryOf(*check, *access, pointer, number++);
          home = check->failing;
          remove(block, *check);
        }
    if (home)
      write(*home, entries);
    return home != nullptr;
  }

private:
  const TargetInstrInfo *target = nullptr;
  const TargetRegisterInfo *registers = nullptr;

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
    Check check = {nullptr, Register(), 0, failsIfTaken ? yes : no, failsIfTaken ? no : yes};
    const MDNode *site = siteOf(*check.failing);
    if (!site || check.failing->empty() || check.passed == &block)
      return std::nullopt;
    // Into the access lead only the comparison and, when attempts are exhausted, its own failing edge.
    for (MachineBasicBlock *pred : check.passed->predecessors())
      if (pred != &block && siteOf(*pred) != site)
        return std::nullopt;
    if (hasFlags(*check.failing) || hasFlags(*check.passed) || !findCompare(block, code, check))
      return std::nullopt;
    return check;
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

  // Registers that hold the pointer at the end of the block.
  SmallVector<Register, 4> holders(MachineBasicBlock &block, const Check &check) const {
    SmallVector<Register, 4> found = {check.pointer}, spoilt;
    unsigned distance = 0;
    for (MachineBasicBlock::iterator at = block.getFirstTerminator(); at != block.begin() && distance < DISTANCE_MAX;
         distance++) {
      MachineInstr &inst = *--at;
      if (auto copy = target->isCopyInstr(inst)) {
        Register to = copy->Destination->getReg(), from = copy->Source->getReg();
        auto isIntact = [&](Register reg) {
          return none_of(spoilt, [&](Register lost) { return registers->regsOverlap(lost, reg); });
        };
        if (is64(to) && is64(from) && isIntact(to) && isIntact(from) &&
            is_contained(found, to) != is_contained(found, from))
          found.push_back(is_contained(found, to) ? from : to);
      }
      bool isLost = false;
      for (const MachineOperand &operand : inst.operands()) {
        if (operand.isRegMask())
          return found;
        if (operand.isReg() && operand.isDef() && operand.getReg().isPhysical()) {
          spoilt.push_back(operand.getReg());
          isLost |= registers->regsOverlap(operand.getReg(), check.pointer);
        }
      }
      if (isLost)
        return found;
    }
    return found;
  }

  bool is64(Register reg) const {
    return reg.isPhysical() && registers->getMinimalPhysRegClass(reg) &&
           registers->getRegSizeInBits(*registers->getMinimalPhysRegClass(reg)) == 64 &&
           registers->getEncodingValue(reg.asMCReg()) < 16;
  }

  // The access that faults if the pointer is below the bound, and the register that then holds the pointer.
  std::pair<MachineInstr *, Register> accessOf(MachineBasicBlock &block, const Check &check) const {
    SmallVector<Register, 4> pointers = holders(block, check);
    unsigned distance = 0;
    for (MachineInstr &inst : *check.passed) {
      if (inst.isDebugOrPseudoInstr())
        continue;
      if (distance++ == DISTANCE_MAX)
        break;
      if (Register pointer = throughOneOf(inst, pointers))
        return {&inst, pointer};
      if (!isHarmless(inst, check))
        break;
      auto copy = target->isCopyInstr(inst);
      bool holdsPointer = copy && is_contained(pointers, copy->Source->getReg());
      erase_if(pointers, [&](Register reg) { return inst.modifiesRegister(reg, registers); });
      if (holdsPointer && is64(copy->Destination->getReg()))
        pointers.push_back(copy->Destination->getReg());
    }
    return {nullptr, Register()};
  }

  // The register among these on which the address of an access rests.
  Register throughOneOf(const MachineInstr &inst, ArrayRef<Register> pointers) const {
    if (!inst.mayLoadOrStore() || inst.isInlineAsm() || inst.isBundled() || inst.getPostInstrSymbol() ||
        inst.getFlag(MachineInstr::FrameSetup) || inst.getFlag(MachineInstr::FrameDestroy) ||
        inst.getDesc().getNumOperands() < 5)
      return Register();
    std::optional<ExtAddrMode> mode = target->getAddrModeFromMemoryOp(inst, registers);
    if (!mode || mode->Displacement < -DISPLACEMENT_MAX || mode->Displacement > DISPLACEMENT_MAX)
      return Register();
    if (is_contained(pointers, mode->BaseReg))
      return mode->BaseReg;
    bool isPlainSum = mode->ScaledReg.isValid() && mode->Scale == 1;
    return isPlainSum && is_contained(pointers, mode->ScaledReg) ? mode->ScaledReg : Register();
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
      for (const auto &live : check.failing->liveins())
        if (registers->regsOverlap(operand.getReg(), live.PhysReg))
          return false;
    }
    return true;
  }

  // An entry of the table; laid out as `struct fault` of the runtime.
  std::string entryOf(const Check &check, MachineInstr &access, Register pointer, unsigned number) const {
    std::string tag = std::to_string(access.getMF()->getFunctionNumber()) + "_" + std::to_string(number);
    std::string at = label(access, ".Lraddle_fault" + tag);
    std::string to = label(*check.failing->begin(), ".Lraddle_failing" + tag);
    return "\n\t.long " + at + "-.\n\t.long " + to + "-.\n\t.long " +
           std::to_string(registers->getEncodingValue(pointer.asMCReg())) + "\n\t.long " + std::to_string(check.bound);
  }

  // The table goes and stays with the code, in whose section the label in front of it is.
  void write(MachineBasicBlock &block, const std::string &entries) const {
    MachineFunction &function = *block.getParent();
    std::string home = ".Lraddle_faults" + std::to_string(function.getFunctionNumber());
    std::string text = home + ":\n\t.pushsection raddle_faults,\"ao?\",@progbits," + home + entries + "\n\t.popsection";
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
    // The failing block stays a successor: the fault is the edge.
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
