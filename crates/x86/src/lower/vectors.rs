//! Moves of XMM registers; all other SSE instructions go through native stubs.

use iced_x86::Code;

use super::operand::xmm;
use super::select::{Context, Kind, Lowered};
use crate::fast::vector;
use crate::native::Template;
use crate::op::{Handler, LogKind, Op};

impl Context<'_> {
    pub(super) fn vectors<const OBS: u8>(&self) -> Option<Lowered> {
        match self.instruction.code() {
            Code::Movaps_xmm_xmmm128
            | Code::Movaps_xmmm128_xmm
            | Code::Movapd_xmm_xmmm128
            | Code::Movapd_xmmm128_xmm
            | Code::Movdqa_xmm_xmmm128
            | Code::Movdqa_xmmm128_xmm => self.whole(
                true,
                vector::load_16::<true, OBS>,
                vector::store_16::<true, OBS>,
            ),
            Code::Movups_xmm_xmmm128
            | Code::Movups_xmmm128_xmm
            | Code::Movupd_xmm_xmmm128
            | Code::Movupd_xmmm128_xmm
            | Code::Movdqu_xmm_xmmm128
            | Code::Movdqu_xmmm128_xmm => self.whole(
                false,
                vector::load_16::<false, OBS>,
                vector::store_16::<false, OBS>,
            ),
            Code::Pxor_xmm_xmmm128 | Code::Xorps_xmm_xmmm128 | Code::Xorpd_xmm_xmmm128
                if self.kind(1) == Kind::Reg =>
            {
                self.registers(vector::xor_16, Template::XorVector)
            }
            code if self.kind(1) == Kind::Mem => self.load_low::<OBS>(code),
            code if self.kind(0) == Kind::Mem => self.store_low::<OBS>(code),
            code => self.with_general_register(code),
        }
    }

    /// A move of sixteen bytes.
    fn whole(&self, is_aligned: bool, load: Handler, store: Handler) -> Option<Lowered> {
        match (self.kind(0), self.kind(1)) {
            (Kind::Reg, Kind::Reg) => self.registers(vector::move_16, Template::CopyVector),
            (Kind::Reg, _) => self.load(16, load, Template::LoadVector { is_aligned }),
            _ => self.store(16, store, Template::StoreVector { is_aligned }),
        }
    }

    fn registers(&self, handler: Handler, template: Template) -> Option<Lowered> {
        let op = Op {
            dst: xmm(self.instruction.op0_register())?,
            src: xmm(self.instruction.op1_register())?,
            handler,
            ..self.op
        };
        Some(Lowered::plain(op).meaning(template))
    }

    fn load_low<const OBS: u8>(&self, code: Code) -> Option<Lowered> {
        match code {
            Code::Movss_xmm_xmmm32 | Code::Movd_xmm_rm32 => {
                let template = Template::LoadLow { size: 4 };
                self.load(4, vector::load_low::<u32, OBS>, template)
            }
            Code::Movsd_xmm_xmmm64 | Code::Movq_xmm_xmmm64 | Code::Movq_xmm_rm64 => {
                let template = Template::LoadLow { size: 8 };
                self.load(8, vector::load_low::<u64, OBS>, template)
            }
            _ => None,
        }
    }

    fn store_low<const OBS: u8>(&self, code: Code) -> Option<Lowered> {
        match code {
            Code::Movss_xmmm32_xmm | Code::Movd_rm32_xmm => {
                let template = Template::StoreLow { size: 4 };
                self.store(4, vector::store_low::<u32, OBS>, template)
            }
            Code::Movsd_xmmm64_xmm
            | Code::Movq_xmmm64_xmm
            | Code::Movq_rm64_xmm
            | Code::Movlps_m64_xmm
            | Code::Movlpd_m64_xmm => {
                let template = Template::StoreLow { size: 8 };
                self.store(8, vector::store_low::<u64, OBS>, template)
            }
            _ => None,
        }
    }

    /// MOVD and MOVQ between an XMM and a general register.
    fn with_general_register(&self, code: Code) -> Option<Lowered> {
        let handler: Handler = match code {
            Code::Movd_xmm_rm32 => vector::low_from_reg::<u32>,
            Code::Movq_xmm_rm64 => vector::low_from_reg::<u64>,
            Code::Movd_rm32_xmm => vector::low_to_reg::<u32>,
            Code::Movq_rm64_xmm => vector::low_to_reg::<u64>,
            _ => return None,
        };
        let is_wide = matches!(code, Code::Movq_xmm_rm64 | Code::Movq_rm64_xmm);
        let size = if is_wide { 8 } else { 4 };
        let (dst, src, template) = if matches!(code, Code::Movd_xmm_rm32 | Code::Movq_xmm_rm64) {
            let dst = xmm(self.instruction.op0_register())?;
            (dst, self.reg(1)?, Template::LowFromRegister { size })
        } else {
            let src = xmm(self.instruction.op1_register())?;
            (self.reg(0)?, src, Template::LowToRegister { size })
        };
        let op = Op {
            dst,
            src,
            handler,
            ..self.op
        };
        Some(Lowered::plain(op).meaning(template))
    }

    fn load(&self, size: usize, handler: Handler, template: Template) -> Option<Lowered> {
        let (op, _) = self.with_memory(LogKind::Read, size)?;
        let op = Op {
            dst: xmm(self.instruction.op0_register())?,
            handler,
            ..op
        };
        Some(Lowered::barrier(op).meaning(template))
    }

    fn store(&self, size: usize, handler: Handler, template: Template) -> Option<Lowered> {
        let (op, _) = self.with_memory(LogKind::Write, size)?;
        let op = Op {
            src: xmm(self.instruction.op1_register())?,
            handler,
            ..op
        };
        Some(Lowered::barrier(op).meaning(template))
    }
}
