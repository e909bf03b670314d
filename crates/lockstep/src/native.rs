//! A host process that executes single instructions on given registers and memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use nix::libc::{user_fpregs_struct, user_regs_struct};
use nix::sys::ptrace::{self, regset};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use raddle_calls::number;

/// A page that holds a SYSCALL instruction for our own use; below everything that a program maps.
const TRAMPOLINE: u64 = 0x1_0000;
const SYSCALL: [u8; 2] = [0x0F, 0x05];
const MMAP: u64 = number("mmap") as u64;
const MUNMAP: u64 = number("munmap") as u64;
const MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE: u64 = 0x4032;
/// Instructions between two system calls of a starting program, generously.
const STEPS_TO_CALL_MAX: u32 = 1_000_000;
/// End of the memory that a program can map.
const USER_END: u64 = 0x7FFF_FFFF_F000;

/// The process.
#[derive(Debug)]
pub(crate) struct Native {
    child: Child,
    pid: Pid,
    memory: File,
}

impl Native {
    /// Starts a process and empties its address space.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let child = Command::new("sleep")
            .arg("1000000")
            // The kernel would go on writing to its restartable sequences, whose memory we take away.
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the process to be stepped (sleep)")?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        // From here on Drop ends it.
        let memory = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .context("cannot open the memory of the process to be stepped")?;
        let mut native = Self { child, pid, memory };
        native.take_over()?;
        Ok(native)
    }

    fn take_over(&mut self) -> anyhow::Result<()> {
        ptrace::attach(self.pid)
            .context("cannot trace a child process: is ptrace forbidden in this container?")?;
        self.wait_stop()?;
        let flags = MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE;
        self.call_at(
            self.find_syscall()?,
            MMAP,
            [TRAMPOLINE, 0x1000, 7, flags, u64::MAX, 0],
        )?;
        self.write(TRAMPOLINE, &SYSCALL)?;
        self.clear()
    }

    /// Address of a SYSCALL instruction: the one it sleeps in, or else the next one on its way.
    fn find_syscall(&self) -> anyhow::Result<u64> {
        let mut found = [0; 2];
        let here = self.registers()?.rip;
        self.read(here.wrapping_sub(2), &mut found)?;
        if found == SYSCALL {
            return Ok(here.wrapping_sub(2));
        }
        for _ in 0..STEPS_TO_CALL_MAX {
            let here = self.registers()?.rip;
            self.read(here, &mut found)?;
            if found == SYSCALL {
                return Ok(here);
            }
            self.step()?;
        }
        bail!("the process to be stepped makes no system call")
    }

    /// Unmaps everything but the trampoline.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        let start = TRAMPOLINE + 0x1000;
        self.call(MUNMAP, [start, USER_END - start, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Maps zero pages.
    pub(crate) fn map(&self, start: u64, bytes: u64, prot: u64) -> anyhow::Result<()> {
        let flags = MAP_PRIVATE_ANONYMOUS_FIXED_NORESERVE;
        self.call(MMAP, [start, bytes, prot, flags, u64::MAX, 0])?;
        Ok(())
    }

    /// Reads memory whatever its permissions.
    pub(crate) fn read(&self, addr: u64, into: &mut [u8]) -> anyhow::Result<()> {
        self.memory
            .read_exact_at(into, addr)
            .with_context(|| format!("cannot read {addr:#x} of the stepped process"))
    }

    /// Writes memory whatever its permissions.
    pub(crate) fn write(&self, addr: u64, bytes: &[u8]) -> anyhow::Result<()> {
        self.memory
            .write_all_at(bytes, addr)
            .with_context(|| format!("cannot write {addr:#x} of the stepped process"))
    }

    pub(crate) fn registers(&self) -> anyhow::Result<user_regs_struct> {
        Ok(ptrace::getregs(self.pid)?)
    }

    pub(crate) fn set_registers(&self, registers: user_regs_struct) -> anyhow::Result<()> {
        ptrace::setregs(self.pid, registers).context("the registers cannot be set")
    }

    pub(crate) fn float_registers(&self) -> anyhow::Result<user_fpregs_struct> {
        Ok(ptrace::getregset::<regset::NT_PRFPREG>(self.pid)?)
    }

    pub(crate) fn set_float_registers(&self, registers: user_fpregs_struct) -> anyhow::Result<()> {
        ptrace::setregset::<regset::NT_PRFPREG>(self.pid, registers)
            .context("the floating-point registers cannot be set")
    }

    /// Executes one instruction; gives the signal that it raised, if any.
    pub(crate) fn step(&self) -> anyhow::Result<Option<Signal>> {
        ptrace::step(self.pid, None)?;
        let signal = self.wait_stop()?;
        Ok((signal != Signal::SIGTRAP).then_some(signal))
    }

    fn wait_stop(&self) -> anyhow::Result<Signal> {
        match waitpid(self.pid, None)? {
            WaitStatus::Stopped(_, signal) => Ok(signal),
            other => bail!("the stepped process ended: {other:?}"),
        }
    }

    fn call(&self, number: u64, arguments: [u64; 6]) -> anyhow::Result<u64> {
        self.call_at(TRAMPOLINE, number, arguments)
    }

    /// Makes a system call of our own.
    fn call_at(&self, pc: u64, number: u64, arguments: [u64; 6]) -> anyhow::Result<u64> {
        let mut registers = self.registers()?;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = arguments;
        registers.rax = number;
        registers.rip = pc;
        // Not in a call: nothing is to be restarted.
        registers.orig_rax = u64::MAX;
        self.set_registers(registers)?;
        if let Some(signal) = self.step()? {
            bail!("the stepped process got {signal} in a system call of ours");
        }
        let result = self.registers()?.rax;
        if result.cast_signed() < 0 && result.cast_signed() > -4096 {
            let error = std::io::Error::from_raw_os_error(i32::try_from(-result.cast_signed())?);
            bail!("system call {number} {arguments:x?} in the stepped process failed: {error}");
        }
        Ok(result)
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
