//! execve: a new image for a process.

use std::sync::Arc;

use raddle_mem::{AddressSpace, Backing, GuestAddr, PAGE_SIZE, PageNo, Perm, Vma};
use raddle_stdx::width::{to_u64, to_usize};
use raddle_x86::{Cpu, Reg, cpuid};
use thiserror::Error;

use crate::clone::insert_space;
use crate::credentials::{Credentials, Privileges};
use crate::elf::{ElfError, USER_END};
use crate::errno::Errno;
use crate::files;
use crate::futex;
use crate::heap::Heap;
use crate::kernel::{Kernel, Space};
use crate::life;
use crate::load::{self, Loaded};
use crate::process::{Image, Process, SpaceId};
use crate::signal::{Action, AltStack};
use crate::thread::{Activity, Tid};
use crate::time;

/// Bytes of the first thread's stack.
pub(crate) const STACK_SIZE: u64 = 8 << 20;
/// Bytes that arguments and environment may have together.
const STRINGS_MAX: usize = 2 << 20;
/// A script may name a script, and so on, this often.
const SCRIPT_DEPTH_MAX: usize = 4;
/// Bytes of a script's first line that count.
const SCRIPT_LINE_MAX: usize = 256;

/// Why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ExecError {
    #[error("{}", .0.message())]
    Errno(Errno),
    #[error("{0}")]
    Elf(#[from] ElfError),
    #[error("its interpreter `{path}` cannot be used: {reason}")]
    Interpreter { path: String, reason: String },
}

impl From<Errno> for ExecError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl ExecError {
    /// What execve tells the program.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Errno(errno) => *errno,
            Self::Elf(_) => Errno::ENOEXEC,
            Self::Interpreter { .. } => Errno::ENOENT,
        }
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: Vec<u8>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
}

/// Replaces the image of the thread's process. On success the thread stands at the new entry point, all other
/// threads are gone, and the thread has the id of its process.
pub(crate) fn exec(kernel: &mut Kernel, tid: Tid, request: Request) -> Result<(), ExecError> {
    check_size(&request)?;
    let name = Process::command_name(&request.path);
    let (file, request) = resolve_scripts(kernel, tid, request)?;
    let id = insert_space(
        kernel,
        Space {
            map: AddressSpace::default(),
            users: 1,
            brk_start: 0,
            brk: 0,
            heap: Heap::default(),
        },
    );
    let who = credentials_for(kernel, tid, &file);
    match build(kernel, tid, id, &file, &request, &who) {
        Ok(start) => {
            commit(kernel, tid, id, start, NewTask { name, who });
            Ok(())
        }
        Err(error) => {
            life::release_space(kernel, id);
            Err(error)
        }
    }
}

/// Who the thread is in the new image.
fn credentials_for(kernel: &Kernel, tid: Tid, file: &load::File) -> Credentials {
    let privileges = if kernel.process_of(tid).no_new_privileges {
        Privileges::default()
    } else {
        file.privileges
    };
    kernel.credentials(tid).after_exec(privileges)
}

fn check_size(request: &Request) -> Result<(), Errno> {
    let strings = request.arguments.iter().chain(&request.environment);
    let total: usize = strings.map(|text| text.len() + 9).sum();
    if total + request.path.len() > STRINGS_MAX {
        return Err(Errno::E2BIG);
    }
    Ok(())
}

/// Follows `#!` lines until a program is reached.
fn resolve_scripts(
    kernel: &mut Kernel,
    tid: Tid,
    mut request: Request,
) -> Result<(load::File, Request), ExecError> {
    for _ in 0..=SCRIPT_DEPTH_MAX {
        match load::open(kernel, tid, &request.path) {
            Err(ExecError::Elf(ElfError::NotElf)) => {}
            other => return Ok((other?, request)),
        }
        let Some(line) = script_line(kernel, tid, &request.path)? else {
            return Err(ElfError::NotElf.into());
        };
        let mut arguments = vec![line.interpreter.clone()];
        arguments.extend(line.argument);
        arguments.push(request.path);
        arguments.extend(request.arguments.into_iter().skip(1));
        request = Request {
            path: line.interpreter,
            arguments,
            environment: request.environment,
        };
    }
    Err(Errno::ELOOP.into())
}

/// A parsed `#!` line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScriptLine {
    interpreter: Vec<u8>,
    argument: Option<Vec<u8>>,
}

fn script_line(
    kernel: &mut Kernel,
    tid: Tid,
    path: &[u8],
) -> Result<Option<ScriptLine>, ExecError> {
    let found = files::open_for_exec(kernel, tid, path)?;
    let mut start = vec![0; SCRIPT_LINE_MAX];
    let count = load::read_fully(kernel, found.object, 0, &mut start)?;
    Ok(parse_script_line(&start[..count]))
}

fn parse_script_line(start: &[u8]) -> Option<ScriptLine> {
    let text = start.strip_prefix(b"#!")?;
    let line = text.split(|byte| *byte == b'\n').next()?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let trim = |text: &[u8]| -> Vec<u8> {
        let first = text.iter().position(|byte| !is_blank(byte));
        let last = text.iter().rposition(|byte| !is_blank(byte));
        match (first, last) {
            (Some(first), Some(last)) => text[first..=last].to_vec(),
            _ => Vec::new(),
        }
    };
    let line = trim(line);
    let end = line.iter().position(|byte| is_blank(byte) || *byte == 0);
    let (interpreter, rest) = line.split_at(end.unwrap_or(line.len()));
    let argument = trim(rest);
    (!interpreter.is_empty()).then(|| ScriptLine {
        interpreter: interpreter.to_vec(),
        argument: (!argument.is_empty()).then_some(argument),
    })
}

/// What the thread is called in the new image, and who it is.
struct NewTask {
    /// The last name of the path that was asked for: of the link if it was one, of a script and not of its
    /// interpreter.
    name: Arc<str>,
    who: Credentials,
}

/// Where the new image begins.
struct Start {
    entry: u64,
    stack: u64,
    image: Image,
}

fn build(
    kernel: &mut Kernel,
    tid: Tid,
    id: SpaceId,
    file: &load::File,
    request: &Request,
    who: &Credentials,
) -> Result<Start, ExecError> {
    map_stack(kernel, id, file.program.has_executable_stack);
    let loaded = load::map(kernel, id, file, false)?;
    let (_, space) = kernel.memory(id);
    space.brk_start = loaded.end.next_multiple_of(to_u64(PAGE_SIZE));
    space.brk = space.brk_start;
    let linker = match load::interpreter(kernel, file)? {
        None => None,
        Some(name) => Some(load_interpreter(kernel, tid, id, &name)?),
    };
    let mut random = [0; 16];
    kernel.random_bytes(&mut random);
    let stack = initial_stack(request, &loaded, linker.as_ref(), random, who);
    kernel.write_space(id, GuestAddr(stack.pointer), &stack.bytes)?;
    Ok(Start {
        entry: linker.map_or(loaded.entry, |linker| linker.entry),
        stack: stack.pointer,
        image: Image {
            id: kernel.state.images.number(&file.path),
            path: Arc::clone(&file.path),
            command_line: with_nuls(&request.arguments).into(),
            environment: with_nuls(&request.environment).into(),
            auxv: stack.auxv.into(),
            stack_start: stack.pointer,
        },
    })
}

fn load_interpreter(
    kernel: &mut Kernel,
    tid: Tid,
    id: SpaceId,
    name: &[u8],
) -> Result<Loaded, ExecError> {
    let explain = |error: ExecError| ExecError::Interpreter {
        path: String::from_utf8_lossy(name).into_owned(),
        reason: error.to_string(),
    };
    let linker = load::open(kernel, tid, name).map_err(explain)?;
    load::map(kernel, id, &linker, true).map_err(explain)
}

fn map_stack(kernel: &mut Kernel, id: SpaceId, is_executable: bool) {
    let (frames, space) = kernel.memory(id);
    space.map.map(
        frames,
        Vma {
            start: PageNo((USER_END - STACK_SIZE) >> raddle_mem::PAGE_BITS),
            end: PageNo(USER_END >> raddle_mem::PAGE_BITS),
            perm: Perm {
                execute: is_executable,
                ..Perm::RW
            },
            shared: false,
            backing: Backing::Anonymous,
            label: "[stack]".into(),
        },
    );
}

/// The bytes at the top of the stack.
struct InitialStack {
    pointer: u64,
    bytes: Vec<u8>,
    auxv: Vec<u8>,
}

fn with_nuls(strings: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in strings {
        bytes.extend_from_slice(text);
        bytes.push(0);
    }
    bytes
}

/// Builds the strings and vectors that a program finds above its stack pointer (System V ABI, 3.4.1).
fn initial_stack(
    request: &Request,
    loaded: &Loaded,
    linker: Option<&Loaded>,
    random: [u8; 16],
    who: &Credentials,
) -> InitialStack {
    // From low to high: random bytes, platform, arguments, environment, path, eight zero bytes.
    let arguments = with_nuls(&request.arguments);
    let environment = with_nuls(&request.environment);
    let mut strings = Vec::new();
    strings.extend_from_slice(&random);
    strings.extend_from_slice(b"x86_64\0");
    let arguments_offset = to_u64(strings.len());
    strings.extend_from_slice(&arguments);
    let environment_offset = to_u64(strings.len());
    strings.extend_from_slice(&environment);
    let path_offset = to_u64(strings.len());
    strings.extend_from_slice(&request.path);
    strings.extend_from_slice(&[0; 9]);
    let strings_at = (USER_END - to_u64(strings.len())) & !15;
    let strings_for_vector = VectorStrings {
        random: strings_at,
        platform: strings_at + 16,
        path: strings_at + path_offset,
    };
    let auxv = auxiliary_vector(loaded, linker, &strings_for_vector, who);
    let mut words = vec![to_u64(request.arguments.len())];
    push_pointers(
        &mut words,
        &request.arguments,
        strings_at + arguments_offset,
    );
    push_pointers(
        &mut words,
        &request.environment,
        strings_at + environment_offset,
    );
    words.extend_from_slice(&auxv);
    let pointer = (strings_at - to_u64(words.len()) * 8) & !15;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(to_usize(strings_at - pointer), 0);
    bytes.extend_from_slice(&strings);
    InitialStack {
        pointer,
        bytes,
        auxv: auxv.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

fn push_pointers(words: &mut Vec<u64>, strings: &[Vec<u8>], start: u64) {
    let mut at = start;
    for text in strings {
        words.push(at);
        at += to_u64(text.len()) + 1;
    }
    words.push(0);
}

/// Size of a signal frame with its alignment.
const MINIMAL_SIGNAL_STACK: u64 = 1040;

/// Addresses of what the auxiliary vector points to.
struct VectorStrings {
    random: u64,
    platform: u64,
    path: u64,
}

fn auxiliary_vector(
    loaded: &Loaded,
    linker: Option<&Loaded>,
    strings: &VectorStrings,
    who: &Credentials,
) -> Vec<u64> {
    let entries = [
        (51, MINIMAL_SIGNAL_STACK),
        (16, u64::from(cpuid(1, 0, 0).edx)),
        (6, to_u64(PAGE_SIZE)),
        (17, 100),
        (3, loaded.headers),
        (4, 56),
        (5, loaded.header_count),
        (7, linker.map_or(0, |linker| linker.bias)),
        (8, 0),
        (9, loaded.entry),
        (11, u64::from(who.users.real)),
        (12, u64::from(who.users.effective)),
        (13, u64::from(who.groups.real)),
        (14, u64::from(who.groups.effective)),
        (23, u64::from(who.is_secure_exec())),
        (25, strings.random),
        (26, 0),
        (31, strings.path),
        (15, strings.platform),
        (0, 0),
    ];
    entries
        .into_iter()
        .flat_map(|(kind, value)| [kind, value])
        .collect()
}

/// Puts the new image in place of the old one. Nothing can fail from here on.
fn commit(kernel: &mut Kernel, tid: Tid, id: SpaceId, start: Start, task: NewTask) {
    life::end_other_threads(kernel, tid);
    futex::release_robust_list(kernel, tid);
    life::clear_child_tid(kernel, tid);
    let tid = become_leader(kernel, tid);
    let pid = kernel.thread(tid).process;
    let old = kernel.process(pid).space;
    kernel.process_mut(pid).space = id;
    life::release_space(kernel, old);
    life::release_vfork_parent(kernel, pid);
    files::close_on_exec(kernel, pid);
    time::forget_posix_timers(kernel, pid);
    let process = kernel.process_mut(pid);
    process.image = start.image;
    for action in Arc::make_mut(&mut process.actions) {
        if action.is_handler() {
            *action = Action::default();
        } else {
            *action = Action {
                handler: action.handler,
                ..Action::default()
            };
        }
    }
    process.is_dumpable = !task.who.is_secure_exec();
    let thread = kernel.thread_mut(tid);
    thread.credentials = Arc::new(task.who);
    thread.cpu = Cpu::default();
    thread.cpu.rip = start.entry;
    thread.cpu.set_reg(Reg::Rsp, start.stack);
    thread.activity = Activity::User;
    thread.alt_stack = AltStack::NONE;
    thread.torn = None;
    thread.stopped_at_point = None;
    thread.name = Arc::clone(&task.name);
    let context = thread.context;
    kernel.state.contexts.get_mut(context).name = task.name;
    kernel.refresh_liveness(tid);
}

/// The thread that calls execve takes over the id of its process.
fn become_leader(kernel: &mut Kernel, tid: Tid) -> Tid {
    let pid = kernel.thread(tid).process;
    let leader = Tid(pid.0);
    if leader != tid
        && let Some(mut thread) = kernel.state.threads.remove(&tid)
    {
        thread.tid = leader;
        kernel.state.context_threads[thread.context.0 as usize] = leader;
        kernel.state.threads.insert(leader, thread);
        kernel.process_mut(pid).threads = vec![leader];
        kernel.process_mut(pid).leader_status = None;
    }
    leader
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<(String, Option<String>)> {
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        parse_script_line(text.as_bytes())
            .map(|line| (text_of(line.interpreter), line.argument.map(text_of)))
    }

    #[test]
    fn script_lines_have_an_interpreter_and_at_most_one_argument() {
        assert_eq!(line("#!/bin/sh\nx"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            line("#! \t/usr/bin/env  python3 -u \n"),
            Some(("/usr/bin/env".into(), Some("python3 -u".into())))
        );
        assert_eq!(line("#!\n"), None);
        assert_eq!(line("echo"), None);
    }

    #[test]
    fn stack_is_aligned_and_points_to_its_strings() {
        let request = Request {
            path: b"/bin/x".to_vec(),
            arguments: vec![b"x".to_vec(), b"yy".to_vec()],
            environment: vec![b"A=1".to_vec()],
        };
        let loaded = Loaded {
            bias: 0,
            entry: 0x1000,
            headers: 0x40,
            header_count: 1,
            end: 0x2000,
        };
        let stack = initial_stack(&request, &loaded, None, [7; 16], &Credentials::root());
        assert_eq!(stack.pointer % 16, 0);
        let word = |index: usize| {
            u64::from_le_bytes(stack.bytes[index * 8..index * 8 + 8].try_into().unwrap())
        };
        let text = |addr: u64| {
            let at = to_usize(addr - stack.pointer);
            stack.bytes[at..]
                .split(|byte| *byte == 0)
                .next()
                .unwrap()
                .to_vec()
        };
        assert_eq!(word(0), 2);
        assert_eq!(text(word(1)), b"x");
        assert_eq!(text(word(2)), b"yy");
        assert_eq!(word(3), 0);
        assert_eq!(text(word(4)), b"A=1");
        assert!(stack.pointer + to_u64(stack.bytes.len()) <= USER_END);
    }
}
