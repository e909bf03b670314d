//! Whole test cases, good and bad.

use super::*;
use crate::program::{Code, Operand, Relation};

fn parse(text: &str) -> Result<TestCase, TestCaseError> {
    TestCase::parse("t.ktest", text, &mut |name| match name {
        "mine" => Ok(b"\x7FELF module".to_vec()),
        other => Err(format!("there is no module `{other}`")),
    })
}

#[track_caller]
fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

const PIPE: &str = r#"# A pipe.
setup:
    buffer p 8
    pipe2(p, O_NONBLOCK | O_CLOEXEC) == 0
thread writer:
    n = write(p.i32[1], "hello", 5) in {5, -EPIPE}
process closer:
    close(p.i32[0])
check:
    assert n + 1 == 6 || n == -EPIPE
"#;

#[test]
fn a_test_becomes_operations() {
    let case = parse(PIPE).unwrap();
    assert_eq!(case.description(), "A pipe.");
    assert_eq!(case.threads, ["writer", "closer"]);
    assert_eq!(case.program.processes, [false, true]);
    let codes = |operations: &[crate::program::Operation]| {
        operations.iter().map(|op| op.code).collect::<Vec<_>>()
    };
    assert_eq!(
        codes(&case.program.setup),
        [
            Code::Call(293),
            Code::Compare(Relation::Equal),
            Code::Expect
        ]
    );
    assert_eq!(codes(&case.program.threads[1]), [Code::Call(3)]);
    let write = &case.program.threads[0][0];
    assert_eq!(write.code, Code::Call(1));
    let Operand::Load { offset, width } = write.operands[0] else {
        panic!("{write:?}");
    };
    assert_eq!((offset % 16, width.bytes, width.signed), (4, 4, true));
    let Operand::Address(text) = write.operands[1] else {
        panic!("{write:?}");
    };
    assert_eq!(&case.program.data[text..text + 6], b"hello\0");
    assert_eq!(
        case.statements[1].text,
        "n = write(p.i32[1], \"hello\", 5) in {5, -EPIPE}"
    );
    assert_eq!(case.statements[1].section, Section::Thread(0));
    assert_eq!(case.statements[1].line, 6);
}

#[test]
fn structures_are_packed_and_filled_at_run_time() {
    let case = parse(
        "setup:\n e = epoll_create1(0)\n epoll_ctl(e, EPOLL_CTL_ADD, 1, {u32 EPOLLIN, u64 e})\nthread a:\n getpid()\n",
    )
    .unwrap();
    let setup = &case.program.setup;
    assert_eq!(setup[1].code, Code::Store(8));
    let Operand::Address(event) = setup[2].operands[3] else {
        panic!("{setup:?}");
    };
    assert_eq!(setup[1].target, event + 4, "no padding");
    assert_eq!(case.program.data[event], 1);
}

#[test]
fn repetitions_are_written_out() {
    let case =
        parse("thread a:\n repeat 3 {\n  getpid()\n  getuid() == 0\n }\n gettid()\n").unwrap();
    let calls = case.program.threads[0]
        .iter()
        .filter(|op| matches!(op.code, Code::Call(_)))
        .count();
    assert_eq!(calls, 7);
    assert_eq!(case.statements.len(), 7);
}

#[test]
fn modules_travel_with_the_test() {
    let case = parse("setup:\n module \"mine\" \"a=1\"\nthread a:\n getpid()\n").unwrap();
    let load = &case.program.setup[0];
    assert_eq!(load.code, Code::Call(175));
    assert_eq!(load.operands[1], Operand::Value(11));
    assert!(
        error("setup:\n module \"other\"\nthread a:\n getpid()\n")
            .contains("there is no module `other`")
    );
}

#[test]
fn mistakes_are_pointed_at() {
    let misspelt = error("thread a:\n    wirte(1, \"x\", 1)\n");
    assert_eq!(
        misspelt,
        "t.ktest:2:5: `wirte` is not a system call\n 2 |     wirte(1, \"x\", 1)\n   |     ^^^^^\n   = did you mean `write`?"
    );
    assert!(
        error("thread a:\n close(fd)\n")
            .contains("`fd` is neither a name of this test nor a constant")
    );
    assert!(error("thread a:\n open(\"x\", O_RDWRR, 0)\n").contains("did you mean `O_RDWR`?"));
    assert!(error("setup:\n getpid()\n").contains("the test has no threads"));
    assert!(error("getpid()\n").contains("where a section should begin"));
    assert!(error("thread a:\n close(1) 2\n").contains("after the end of the statement"));
    assert!(error("thread a:\n close(1\nthread b:\n").contains("`,` or `)` is missing"));
    assert!(
        error("thread a:\n close(open(\"x\", 0, 0))\n").contains("give its result a name first")
    );
    assert!(error("thread a:\n repeat 2 {\n getpid()\n").contains("not closed"));
    assert!(
        error("check:\n assert 1 == 1\nthread a:\n getpid()\n").contains("the checks come last")
    );
    assert!(
        error("setup:\n buffer b 4\nthread a:\n close(b.i32[1])\n").contains("beyond the 4 bytes")
    );
    assert!(error("thread a:\n mmap(1,2,3,4,5,6,7)\n").contains("at most 6 arguments"));
    assert!(
        error("thread a:\n repeat 5000 {\n getpid()\n }\n").contains("at most 2048 statements")
    );
}

#[test]
fn no_text_makes_the_parser_fail_badly() {
    let mut prng = raddle_stdx::Prng::new(5);
    for _ in 0..3000 {
        let mut bytes = PIPE.as_bytes().to_vec();
        for _ in 0..1 + prng.below(4) {
            let at = usize::try_from(prng.below(bytes.len() as u64)).unwrap();
            match prng.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = b" (){}[]=|\"\n:,.x0-"[usize::try_from(prng.below(17)).unwrap()],
                _ => bytes.truncate(at.max(4)),
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        if let Err(error) = parse(&text) {
            let shown = error.to_string();
            assert!(shown.starts_with("t.ktest:"), "{shown}");
        }
    }
}

#[test]
fn results_are_shown_by_name() {
    assert_eq!(TestCase::show_result(-11), "-EAGAIN");
    assert_eq!(TestCase::show_result(5), "5");
    assert_eq!(TestCase::show_result(-99_999), "-99999");
}

/// Those that show bugs of packaged kernels are run by hand, because a later package may have mended them.
#[test]
fn tests_of_what_was_found_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/kernel/found");
    let mut tests = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus exists") {
        let path = entry.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        if let Err(error) = parse(&text) {
            panic!("{}: {error}", path.display());
        }
        tests += 1;
    }
    assert!(tests >= 2, "the corpus is complete");
}
