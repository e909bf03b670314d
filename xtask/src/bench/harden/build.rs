//! Builds of a program: its objects are compiled once and linked in as many layouts as are measured.
//!
//! Where code and data lie in a program changes its speed by more than hardening does (Mytkowicz and others, "Producing
//! wrong data without doing anything obviously wrong", 2009). The remedy is that of Stabilizer (Curtsinger and Berger,
//! 2013): measure many layouts. Two programs that are compared have the same layout each time, so that they differ in
//! nothing but hardening.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use raddle_stdx::Prng;

use super::programs::Program;
use crate::bench::cpu;

/// Folders and programs of a measurement.
pub(super) struct Place {
    pub(super) raddle: PathBuf,
    pub(super) work: PathBuf,
    /// What is there is not built again.
    pub(super) reuse: bool,
}

/// A program, compiled.
pub(super) struct Built<'a> {
    place: &'a Place,
    program: &'a Program,
    folder: &'a Path,
    objects: Vec<PathBuf>,
    /// Those of hardening, if it is hardened.
    options: Option<String>,
    /// Linked in the order of the sources.
    pub(super) binary: PathBuf,
    pub(super) report: PathBuf,
    /// Processor time of the compilation, if it was made now.
    pub(super) seconds: Option<f64>,
}

impl Place {
    pub(super) fn new(reuse: bool) -> anyhow::Result<Self> {
        let work = crate::shell::target_folder().join("bench/harden");
        fs::create_dir_all(&work)?;
        Ok(Self {
            raddle: crate::shell::released(),
            work,
            reuse,
        })
    }

    /// Builds with clang if there are no options of ours, else with `raddle cc`.
    pub(super) fn build<'a>(
        &'a self,
        program: &'a Program,
        folder: &'a Path,
        what: &str,
        options: Option<&str>,
    ) -> anyhow::Result<Built<'a>> {
        let report = folder.join(format!("{what}.jsonl"));
        let options = options.map(|options| {
            let report = report.display();
            format!("--harden-strict --harden-report={report} {options}")
        });
        let objects = folder.join(format!("objects-{what}"));
        let mut built = Built {
            place: self,
            program,
            folder,
            objects: (0..program.sources.len())
                .map(|number| objects.join(format!("{number}.o")))
                .collect(),
            options,
            binary: folder.join(format!("{}-{what}", program.name)),
            report,
            seconds: None,
        };
        let is_there = built.binary.exists() && objects.exists();
        if !(self.reuse && is_there) {
            built.compile(&objects)?;
        }
        Ok(built)
    }
}

impl Built<'_> {
    fn compile(&mut self, objects: &Path) -> anyhow::Result<()> {
        if self.report.exists() {
            fs::remove_file(&self.report)?;
        }
        fs::create_dir_all(objects)?;
        let before = cpu::of_children();
        for (source, object) in self.program.sources.iter().zip(&self.objects) {
            let mut command = self.compiler();
            command.args(["-c", source, "-o"]).arg(object);
            finish(&mut command)?;
        }
        let objects: Vec<&Path> = self.objects.iter().map(PathBuf::as_path).collect();
        self.link(&objects, &self.binary)?;
        self.seconds = Some(cpu::of_children() - before);
        Ok(())
    }

    /// Links in the given layout.
    pub(super) fn lay_out(&self, layout: &Layout, output: &Path) -> anyhow::Result<()> {
        let ordered = layout.order.iter().map(|&number| &*self.objects[number]);
        let objects: Vec<&Path> = [&*layout.gap].into_iter().chain(ordered).collect();
        self.link(&objects, output)
    }

    fn link(&self, objects: &[&Path], output: &Path) -> anyhow::Result<()> {
        let mut command = self.compiler();
        command
            .args(objects)
            .args(self.program.libraries)
            .arg("-o")
            .arg(output);
        finish(&mut command)
    }

    fn compiler(&self) -> Command {
        let mut command = match &self.options {
            None => Command::new(self.program.plain_compiler()),
            Some(options) => {
                let mut command = Command::new(&self.place.raddle);
                command
                    .arg(self.program.driver)
                    .env("RADDLE_HARDEN_OPTIONS", options);
                command
            }
        };
        command.args(self.program.flags).current_dir(self.folder);
        command
    }

    /// The size of all code and constant data, as `size` counts it.
    pub(super) fn text_size(&self) -> anyhow::Result<u64> {
        let output = Command::new("size").arg(&self.binary).output()?;
        let text = String::from_utf8(output.stdout)?;
        let number = text
            .lines()
            .nth(1)
            .and_then(|line| line.split_whitespace().next())
            .context("`size` printed no table")?;
        Ok(number.parse()?)
    }
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status()?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// In which order the objects of a program are linked, behind a gap.
pub(super) struct Layout {
    order: Vec<usize>,
    gap: PathBuf,
}

impl Layout {
    /// Number 0 is the order of the sources without a gap; the others are random.
    pub(super) fn new(program: &Program, folder: &Path, number: u64) -> anyhow::Result<Self> {
        let mut prng = Prng::new(number);
        let mut gap_before = || match number {
            0 => 0,
            _ => 16 * prng.below(256),
        };
        let text = format!(
            ".text\n.skip {}\n.data\n.skip {}\n.bss\n.skip {}\n.section .note.GNU-stack,\"\",@progbits\n",
            gap_before(),
            gap_before(),
            gap_before()
        );
        let source = folder.join("gap.s");
        fs::write(&source, text)?;
        let gap = source.with_extension("o");
        finish(
            Command::new(program.plain_compiler())
                .arg("-c")
                .arg(&source)
                .arg("-o")
                .arg(&gap),
        )?;
        let mut order: Vec<usize> = (0..program.sources.len()).collect();
        if number > 0 {
            order.sort_by_cached_key(|_| prng.next_u64());
        }
        Ok(Self { order, gap })
    }
}
