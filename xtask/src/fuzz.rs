//! `cargo xtask fuzz-cpu`: builds the differential fuzzer optimised and runs it.

use crate::shell;

#[derive(Debug, clap::Args)]
pub(crate) struct FuzzCpu {
    /// Cases in total.
    #[arg(long, default_value_t = 10_000_000)]
    cases: u64,
    /// The seed that everything follows from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only instruction forms whose name contains this.
    #[arg(long)]
    form: Option<String>,
    /// What is compared: `interpreter`, `engine`, `engine-addr`, `engine-value`, `log` or `log-value`.
    #[arg(long, default_value = "engine")]
    subject: String,
    /// Random programs instead of single instructions.
    #[arg(long)]
    programs: bool,
    /// Name every form, with its number of cases or why it is not compared.
    #[arg(long)]
    list: bool,
}

impl FuzzCpu {
    /// What every run of the tests includes.
    pub(crate) fn in_ci() -> Self {
        Self {
            cases: 10_000_000,
            seed: 1,
            form: None,
            subject: "engine".into(),
            programs: false,
            list: false,
        }
    }
}

pub(crate) fn run(arguments: &FuzzCpu) -> anyhow::Result<()> {
    let (cases, seed) = (arguments.cases.to_string(), arguments.seed.to_string());
    let mut command = vec![
        "run",
        "--quiet",
        "--release",
        "--package",
        "raddle-x86",
        "--features",
        "fuzz",
        "--bin",
        "fuzz-cpu",
        "--",
        "--cases",
        &cases,
        "--seed",
        &seed,
        "--subject",
        &arguments.subject,
    ];
    if let Some(form) = &arguments.form {
        command.extend(["--form", form]);
    }
    if arguments.programs {
        command.push("--programs");
    }
    if arguments.list {
        command.push("--list");
    }
    shell::run("cargo", &command)
}
