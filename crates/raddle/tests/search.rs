//! What `raddle explore` varies and how it searches, from the outside: time, single instructions, all
//! interleavings, a focus.

use std::path::Path;

use raddle_campaign::Algorithm;
use raddle_testkit::{
    compile, compile_test_program, compile_text, git, raddle_in, temporary, test_program,
};

/// Exit status and all text of an exploration of one of the test programs.
fn explore(name: &str, level: &str, options: &[&str]) -> (i32, String) {
    let folder = temporary();
    let source = format!("explore/{name}.c");
    let program = compile_test_program(folder.path(), &source, &["-g", level, "-pthread"]);
    run(folder.path(), &program, options)
}

fn run(folder: &Path, program: &Path, options: &[&str]) -> (i32, String) {
    let mut command = raddle_in(folder, &["explore", "--jobs", "1", "--time", "300"]);
    raddle_testkit::run(command.args(options).arg("--").arg(program)).told()
}

#[test]
fn a_sleep_that_stands_for_a_join_is_found_and_only_if_time_may_pass() {
    let (status, text) = explore("sleep", "-O1", &["--schedules", "400"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("assertion failed"), "{text}");
    let options = ["--schedules", "400", "--no-time-jumps", "--json"];
    let (_, text) = explore("sleep", "-O1", &options);
    assert!(!text.contains("assertion"), "{text}");
}

#[test]
fn an_update_by_one_instruction_can_be_lost() {
    let (status, text) = explore("torn", "-O2", &["--schedules", "400"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("exit status 1 instead of 0"), "{text}");
}

#[test]
fn a_child_that_executes_another_program_can_come_first() {
    let folder = temporary();
    let source = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void)
        {
            pid_t child = fork();
            if (child == 0) {
                execl("/bin/echo", "echo", "child", (char *)0);
                _exit(127);
            }
            if (write(1, "parent\n", 7) != 7)
                return 2;
            waitpid(child, NULL, 0);
            return 0;
        }
    "#;
    let program = compile_text(folder.path(), "echo.c", source, &["-O1", "-g"]);
    let expected = folder.path().join("expected");
    std::fs::write(&expected, "parent\nchild\n").expect("it can be written");
    let expected = expected.display().to_string();
    let options = ["--schedules", "100", "--expect-output", &expected];
    let (status, text) = run(folder.path(), &program, &options);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("child"), "{text}");
}

#[test]
fn all_interleavings_of_a_small_program_are_explored() {
    let (status, text) = explore("fixed", "-O0", &["--exhaustive"]);
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("interleavings at this granularity explored: no failure"),
        "{text}"
    );
    let (status, text) = explore("lost", "-O0", &["--exhaustive"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("assertion failed"), "{text}");
    let (_, text) = explore("fixed", "-O0", &["--exhaustive", "--schedules", "5"]);
    assert!(text.contains(" of about "), "{text}");
}

#[test]
fn freeing_and_unmapping_concern_whoever_uses_the_memory() {
    let (status, text) = explore("freed_block", "-O1", &["--exhaustive"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("use after free"), "{text}");
    let (status, text) = explore("unmapped", "-O1", &["--exhaustive"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("SIGSEGV at unmapped.c:12 reader"), "{text}");
}

#[test]
fn what_a_library_does_counts_where_it_was_called() {
    let (status, text) = explore("copied", "-O1", &["--exhaustive"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("assertion failed"), "{text}");
    let (status, text) = explore("copied", "-O1", &["--schedules", "400", "--races"]);
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("reads `fields[0]`.. (library call)"),
        "{text}"
    );
    let race = "data race on `fields[0]` between copied.c:19 copier and copied.c:12 writer";
    assert!(text.contains(race), "{text}");
}

#[test]
fn a_race_is_one_variables_and_has_one_name() {
    let titles = ["1", "2", "3"].map(|seed| {
        let options = ["--races", "--schedules", "60", "--seed", seed];
        let (_, text) = explore("beside", "-O1", &options);
        let races = text.lines().filter(|line| line.contains("data race on"));
        let names = races.filter_map(|line| {
            let (_, variable) = line.split_once("data race on ")?;
            let (variable, rest) = variable.split_once(" between ")?;
            // Which side comes first is an accident; the finding's name is not.
            let name = rest.split_whitespace().last()?;
            Some(format!("{variable} {name}"))
        });
        let names: Vec<String> = names.collect();
        assert_eq!(names.len(), 2, "{text}");
        names
    });
    for variable in ["`plain.data` DR-", "`mixed.data` DR-"] {
        let has_it = |name: &String| name.starts_with(variable);
        assert!(titles[0].iter().any(has_it), "{titles:?}");
    }
    let [first, others @ ..] = titles.map(std::collections::BTreeSet::from_iter);
    assert!(
        others.iter().all(|other| *other == first),
        "{first:?} {others:?}"
    );
}

#[test]
fn what_a_library_reads_beyond_a_string_is_no_race() {
    let options = ["--schedules", "400", "--races"];
    let (status, text) = explore("neighbours", "-fno-builtin", &options);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn system_calls_use_memory_like_the_program_that_makes_them() {
    let (status, text) = explore("sent", "-O1", &["--schedules", "400"]);
    assert_eq!(status, 1, "{text}");
    let error = "use after free: thread 2 reads freed memory at sent.c:12 sender";
    assert!(text.contains(error), "{text}");
    let (status, text) = explore("path", "-O1", &["--schedules", "400", "--races"]);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn what_goes_through_the_kernel_is_in_order() {
    let options = ["--schedules", "300", "--races", "--no-time-jumps"];
    let (status, text) = explore("handed_over", "-O1", &options);
    assert_eq!(status, 0, "{text}");
    let (status, text) = explore("handed_over", "-DTOO_EARLY", &options);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("data race on `by_pipe`"), "{text}");
    assert!(!text.contains("data race on `by_event`"), "{text}");
}

#[test]
fn synchronisation_of_the_standard_libraries_is_known() {
    let options = ["--schedules", "150", "--races"];
    let (status, text) = explore("idioms", "-O1", &options);
    assert_eq!(status, 0, "{text}");
    let folder = temporary();
    let flags = ["-std=c++20", "-g", "-O1", "-pthread"];
    let program = compile_test_program(folder.path(), "explore/idioms.cc", &flags);
    let (status, text) = run(folder.path(), &program, &options);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn without_debug_information_plain_moves_may_be_atomic() {
    let options = ["--schedules", "200", "--races"];
    let (status, text) = explore("published", "-g0", &options);
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("where synchronisation is not known"),
        "{text}"
    );
    let (status, text) = explore("lost", "-g0", &options);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("data race on `balance`"), "{text}");
}

#[test]
fn a_test_program_without_tests_tests_nothing() {
    let folder = temporary();
    let program = compile_text(folder.path(), "empty.rs", "", &["--test"]);
    let (status, text) = run(folder.path(), &program, &[]);
    assert_eq!(status, 4, "{text}");
    assert!(text.contains("0 tests explored"), "{text}");
    assert!(text.contains("nothing was tested"), "{text}");
}

#[test]
fn a_focus_decides_where_threads_are_switched() {
    let (status, text) = explore("lost", "-O0", &["--schedules", "300", "--focus", "deposit"]);
    assert_eq!(status, 1, "{text}");
    let (status, text) = explore("lost", "-O0", &["--focus", "no_such_function"]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("no_such_function"), "{text}");
}

#[test]
fn a_focus_on_changed_lines_comes_from_git() {
    let folder = temporary();
    let source = folder.path().join("lost.c");
    std::fs::copy(test_program("explore/lost.c"), &source).expect("the source");
    let git = |arguments: &[&str]| git(folder.path(), arguments);
    let build = || {
        compile(
            &source,
            &folder.path().join("lost"),
            &["-g", "-O0", "-pthread"],
        )
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    let program = build();
    let (status, text) = run(folder.path(), &program, &["--diff", "HEAD"]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("nothing to focus on"), "{text}");
    let changed = std::fs::read_to_string(&source).expect("the source");
    let changed = changed.replace("balance = old", "balance  = old");
    std::fs::write(&source, changed).expect("the source");
    let program = build();
    let (status, text) = run(
        folder.path(),
        &program,
        &["--diff", "HEAD", "--schedules", "300"],
    );
    assert_eq!(status, 1, "{text}");
}

#[test]
fn every_scheduler_finds_a_lost_update() {
    // PIKE looks for one moment among 50,000 instructions, most of which this program does not have.
    let names = Algorithm::NAMES.map(|(name, _)| name);
    for name in names.into_iter().filter(|name| *name != "pike") {
        let options = ["--scheduler", name, "--schedules", "400", "--until-found"];
        let (status, text) = explore("lost", "-O0", &options);
        assert_eq!(status, 1, "{name}: {text}");
        assert!(text.contains("assertion failed"), "{name}: {text}");
    }
}

#[test]
fn a_measured_exploration_tells_where_its_time_went_and_finds_the_same() {
    let options = ["--schedules", "100", "--json"];
    let (_, plain) = explore("fixed", "-O0", &options);
    let (_, measured) = explore("fixed", "-O0", &[&options[..], &["--timing"]].concat());
    let parse = |text: &str| {
        // Progress is told on standard error, which comes behind the document.
        let document = text.split("\nraddle: ").next().expect("it has a beginning");
        serde_json::from_str::<serde_json::Value>(document).expect("JSON")
    };
    let (plain, mut measured) = (parse(&plain), parse(&measured));
    let spent = measured["summary"]
        .as_object_mut()
        .and_then(|summary| summary.remove("nanoseconds"))
        .expect("the time");
    for part in ["restore", "run", "detect", "plan"] {
        assert!(spent[part].as_u64() > Some(0), "{part}: {spent}");
    }
    assert_eq!(plain["summary"], measured["summary"]);
    let (_, text) = explore("fixed", "-O0", &["--schedules", "100", "--timing"]);
    assert!(text.contains("% restoring"), "{text}");
}
