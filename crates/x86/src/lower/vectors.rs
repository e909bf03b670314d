//! Moves of XMM registers; all other SSE instructions go through native stubs.

use iced_x86::Code;

use super::operand::xmm;
use super::select::{Context, Kind, Lowered};
use crate::fast::vector;
use crate::op::{Handler, LogKind, Op};

impl Context<'_> {
    pub(super) fn vectors<const OBS: u8>(&self) -> Option<Lowered> {
        match self.instruction.code() {
            Code::Movaps_xmm_xmmm128
            | Code::Movaps_xmmm128_xmm
            | Code::Movapd_xmm_xmmm128
            | Code::Movapd_xmmm128_xmm
            | Code::Movdqa_xmm_xmmm128
            | Code::Movdqa_xmmm128_xmm => {
                self.whole(vector::load_16::<true, OBS>, vector::store_16::<true, OBS>)
            }
            Code::Movups_xmm_xmmm128
            | Code::Movups_xmmm128_xmm
            | Code::Movupd_xmm_xmmm128
            | Code::Movupd_xmmm128_xmm
            | Code::Movdqu_xmm_xmmm128
            | Code::Movdqu_xmmm128_xmm => self.whole(
                vector::load_16::<false, OBS>,
                vector::store_16::<false, OBS>,
            ),
            Code::Pxor_xmm_xmmm128 | Code::Xorps_xmm_xmmm128 | Code::Xorpd_xmm_xmmm128
                if self.kind(1) == Kind::Reg =>
            {
                self.registers(vector::xor_16)
            }
            code if self.kind(1) == Kind::Mem => self.load_low::<OBS>(code),
            code if self.kind(0) == Kind::Mem => self.store_low::<OBS>(code),
            code => self.with_general_register(code),
        }
    }

    /// A move of sixteen bytes.
    fn whole(&self, load: Handler, store: Handler) -> Option<Lowered> {
        match (self.kind(0), self.kind(1)) {
            (Kind::Reg, Kind::Reg) => self.registers(vector::move_16),
            (Kind::Reg, _) => self.load(16, load),
            _ => self.store(16, store),
        }
    }

    fn registers(&self, handler: Handler) -> Option<Lowered> {
        Some(Lowered::plain(Op {
            dst: xmm(self.instruction.op0_register())?,
            src: xmm(self.instruction.op1_register())?,
            handler,
            ..self.op
        }))
    }

    fn load_low<const OBS: u8>(&self, code: Code) -> Option<Lowered> {
        match code {
            Code::Movss_xmm_xmmm32 | Code::Movd_xmm_rm32 => {
                self.load(4, vector::load_low::<u32, OBS>)
            }
            Code::Movsd_xmm_xmmm64 | Code::Movq_xmm_xmmm64 | Code::Movq_xmm_rm64 => {
                self.load(8, vector::load_low::<u64, OBS>)
            }
            _ => None,
        }
    }

    fn store_low<const OBS: u8>(&self, code: Code) -> Option<Lowered> {
        match code {
            Code::Movss_xmmm32_xmm | Code::Movd_rm32_xmm => {
                self.store(4, vector::store_low::<u32, OBS>)
            }
            Code::Movsd_xmmm64_xmm
            | Code::Movq_xmmm64_xmm
            | Code::Movq_rm64_xmm
            | Code::Movlps_m64_xmm
            | Code::Movlpd_m64_xmm => self.store(8, vector::store_low::<u64, OBS>),
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
        let (dst, src) = if matches!(code, Code::Movd_xmm_rm32 | Code::Movq_xmm_rm64) {
            (xmm(self.instruction.op0_register())?, self.reg(1)?)
        } else {
            (self.reg(0)?, xmm(self.instruction.op1_register())?)
        };
        Some(Lowered::plain(Op {
            dst,
            src,
            handler,
            ..self.op
        }))
    }

    fn load(&self, size: usize, handler: Handler) -> Option<Lowered> {
        let (op, _) = self.with_memory(LogKind::Read, size)?;
        Some(Lowered::barrier(Op {
            dst: xmm(self.instruction.op0_register())?,
            handler,
            ..op
        }))
    }

    fn store(&self, size: usize, handler: Handler) -> Option<Lowered> {
        let (op, _) = self.with_memory(LogKind::Write, size)?;
        Some(Lowered::barrier(Op {
            src: xmm(self.instruction.op1_register())?,
            handler,
            ..op
        }))
    }
}
