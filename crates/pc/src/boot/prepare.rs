//! What lies in memory and in the registers when the kernel gets control.

use std::ops::Range;

use raddle_stdx::width::{low_u32, to_u64};

use super::acpi::{ACPI_BASE, tables};
use super::image::KernelImage;

/// Switches that take nothing from the kernel but what would be slow or different from boot to boot.
pub const DEFAULT_COMMAND_LINE: &str = "console=ttyS0 panic=-1 tsc=reliable cryptomgr.notests \
    mitigations=off nopti nokaslr nowatchdog audit=0 lsm= random.trust_cpu=off random.trust_bootloader=on \
    initcall_blacklist=trace_eval_init,init_kprobe_trace,init_blk_tracer,cubictcp_register,\
bpf_prog_test_run_init,slab_sysfs_init,load_system_certificate_list,jent_mod_init,bpf_tcp_ca_kfunc_init,\
bpf_dummy_struct_ops_init rdinit=/init";

/// RAM that a machine can have.
pub const MEMORY_MIN: u64 = 64 << 20;
pub const MEMORY_MAX: u64 = 2 << 30;

/// Longest command line that kernels take, with its zero.
const COMMAND_LINE_MAX: usize = 2048;

const PAGE: u64 = 0x1000;
/// Low memory, all of it RAM that the kernel may use later: descriptor table, parameters, random seed, page
/// tables, command line.
const GDT: u64 = 0x1000;
const STACK_TOP: u64 = 0x7000;
const PARAMETERS: u64 = 0x7000;
const SETUP_DATA: u64 = 0x8000;
const PAGE_TABLES: u64 = 0x9000;
const COMMAND_LINE: u64 = 0x2_0000;
const LOW_END: u64 = 0x9_FC00;
const HIGH_START: u64 = 0x10_0000;
/// Gibibytes that are mapped one to one at the entry.
const MAPPED_GIB: u64 = 4;

const CODE_SELECTOR: u16 = 0x10;
const DATA_SELECTOR: u16 = 0x18;
/// Null, null, 64-bit code, data: as the boot protocol names them.
const DESCRIPTORS: [u64; 4] = [0, 0, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF];

/// `setup_data` of type 9 is a seed of the random pool.
const RANDOM_SEED: u32 = 9;
const SEED_BYTES: usize = 32;

/// What the user decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootConfig {
    pub cpus: usize,
    /// Bytes of RAM.
    pub memory: u64,
    pub command_line: String,
    /// Seed of everything random in the guest.
    pub seed: u64,
}

/// Why a configuration cannot be booted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BootError {
    #[error("the machine can have 1 to {max} processors, not {cpus}")]
    Cpus { cpus: usize, max: usize },
    #[error(
        "the machine can have {} to {} MiB of RAM, not {} MiB",
        MEMORY_MIN >> 20,
        MEMORY_MAX >> 20,
        memory >> 20
    )]
    Memory { memory: u64 },
    #[error(
        "the kernel and its initial file system need {needed} MiB, the machine has {} MiB of RAM: give it more with --memory",
        memory >> 20
    )]
    TooSmall { needed: u64, memory: u64 },
    #[error("the kernel's command line has {length} bytes, the limit is {COMMAND_LINE_MAX}")]
    CommandLine { length: usize },
}

/// Most processors of a machine.
const CPUS_MAX: usize = 8;

/// Bytes that go to a physical address before the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub physical: u64,
    pub bytes: Vec<u8>,
}

/// Registers of the first processor; all others are zero or as after reset. The other processors wait for
/// their start-up messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub rip: u64,
    pub rsp: u64,
    /// Address of the boot parameters.
    pub rsi: u64,
    pub cr3: u64,
    /// Base and limit of the descriptor table.
    pub gdt_base: u64,
    pub gdt_limit: u16,
    /// 64-bit code, present, level 0.
    pub code_selector: u16,
    /// Data, level 0: DS, ES, SS, FS and GS.
    pub data_selector: u16,
}

/// A machine that is ready to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootImage {
    pub writes: Vec<Write>,
    pub entry: Entry,
}

impl BootImage {
    /// Lays out kernel, parameters and initial file system in the RAM of a machine.
    pub fn new(
        kernel: &KernelImage,
        initramfs: &[u8],
        config: &BootConfig,
    ) -> Result<Self, BootError> {
        check(config)?;
        let ramdisk = place_ramdisk(kernel, initramfs, config.memory)?;
        let mut writes = vec![
            Write {
                physical: GDT,
                bytes: DESCRIPTORS.map(u64::to_le_bytes).concat(),
            },
            Write {
                physical: SETUP_DATA,
                bytes: random_seed(config.seed),
            },
            Write {
                physical: PAGE_TABLES,
                bytes: page_tables(),
            },
            Write {
                physical: COMMAND_LINE,
                bytes: [config.command_line.as_bytes(), &[0]].concat(),
            },
            Write {
                physical: ACPI_BASE,
                bytes: tables(config.cpus),
            },
            Write {
                physical: PARAMETERS,
                bytes: parameters(config, &ramdisk),
            },
        ];
        for segment in &kernel.segments {
            writes.push(Write {
                physical: segment.physical,
                bytes: kernel.elf[segment.file.clone()].to_vec(),
            });
        }
        writes.push(Write {
            physical: ramdisk.start,
            bytes: initramfs.to_vec(),
        });
        Ok(Self {
            writes,
            entry: Entry {
                rip: kernel.entry,
                rsp: STACK_TOP,
                rsi: PARAMETERS,
                cr3: PAGE_TABLES,
                gdt_base: GDT,
                gdt_limit: 31,
                code_selector: CODE_SELECTOR,
                data_selector: DATA_SELECTOR,
            },
        })
    }
}

fn check(config: &BootConfig) -> Result<(), BootError> {
    if config.cpus == 0 || config.cpus > CPUS_MAX {
        return Err(BootError::Cpus {
            cpus: config.cpus,
            max: CPUS_MAX,
        });
    }
    if !(MEMORY_MIN..=MEMORY_MAX).contains(&config.memory) {
        return Err(BootError::Memory {
            memory: config.memory,
        });
    }
    let length = config.command_line.len() + 1;
    if length > COMMAND_LINE_MAX {
        return Err(BootError::CommandLine { length });
    }
    Ok(())
}

/// At the top of memory, where the kernel is least likely to grow.
fn place_ramdisk(
    kernel: &KernelImage,
    initramfs: &[u8],
    memory: u64,
) -> Result<Range<u64>, BootError> {
    let size = to_u64(initramfs.len());
    let too_small = BootError::TooSmall {
        needed: ((kernel.end() + size) >> 20) + 1,
        memory,
    };
    let start = memory.checked_sub(size).map(|start| start & !(PAGE - 1));
    match start {
        Some(start) if start >= kernel.end() => Ok(start..start + size),
        _ => Err(too_small),
    }
}

fn random_seed(seed: u64) -> Vec<u8> {
    let mut prng = raddle_stdx::Prng::new(seed);
    let mut bytes = Vec::with_capacity(16 + SEED_BYTES);
    bytes.extend_from_slice(&0_u64.to_le_bytes());
    bytes.extend_from_slice(&RANDOM_SEED.to_le_bytes());
    bytes.extend_from_slice(&low_u32(to_u64(SEED_BYTES)).to_le_bytes());
    for _ in 0..SEED_BYTES / 8 {
        bytes.extend_from_slice(&prng.next_u64().to_le_bytes());
    }
    bytes
}

/// The first gibibytes one to one in pages of two mebibytes.
fn page_tables() -> Vec<u8> {
    const PRESENT_WRITABLE: u64 = 3;
    const LARGE: u64 = 1 << 7;
    let directories = PAGE_TABLES + 2 * PAGE;
    let mut words = vec![0_u64; 512 * (2 + 4)];
    words[0] = (PAGE_TABLES + PAGE) | PRESENT_WRITABLE;
    for gib in 0..4 {
        words[512 + gib] = (directories + to_u64(gib) * PAGE) | PRESENT_WRITABLE;
    }
    for (index, word) in words[1024..].iter_mut().enumerate() {
        *word = to_u64(index) << 21 | PRESENT_WRITABLE | LARGE;
    }
    assert_eq!(to_u64(words.len() - 1024), MAPPED_GIB * 512);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The zero page.
fn parameters(config: &BootConfig, ramdisk: &Range<u64>) -> Vec<u8> {
    const RAM: u32 = 1;
    let mut page = vec![0; 4096];
    let mut put = |offset: usize, bytes: &[u8]| {
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
    };
    put(0x070, &ACPI_BASE.to_le_bytes());
    put(0x1FA, &0xFFFF_u16.to_le_bytes());
    put(0x1FE, &[0x55, 0xAA]);
    put(0x202, b"HdrS");
    put(0x206, &0x020F_u16.to_le_bytes());
    // A boot loader without a number of its own; the kernel is loaded high.
    put(0x210, &[0xFF, 0x01]);
    put(0x218, &low_u32(ramdisk.start).to_le_bytes());
    put(0x21C, &low_u32(ramdisk.end - ramdisk.start).to_le_bytes());
    put(0x228, &low_u32(COMMAND_LINE).to_le_bytes());
    put(0x230, &0x20_0000_u32.to_le_bytes());
    put(0x250, &SETUP_DATA.to_le_bytes());
    let map = [0..LOW_END, HIGH_START..config.memory];
    put(0x1E8, &[2]);
    for (index, range) in map.iter().enumerate() {
        let at = 0x2D0 + index * 20;
        put(at, &range.start.to_le_bytes());
        put(at + 8, &(range.end - range.start).to_le_bytes());
        put(at + 16, &RAM.to_le_bytes());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::image::Segment;

    fn kernel(end: u64) -> KernelImage {
        KernelImage {
            elf: vec![0x90; 16],
            entry: 0x100_0000,
            segments: vec![Segment {
                physical: 0x100_0000,
                virtual_address: 0,
                file: 0..16,
                size: end - 0x100_0000,
            }],
            compression: None,
        }
    }

    fn config() -> BootConfig {
        BootConfig {
            cpus: 2,
            memory: 64 << 20,
            command_line: "quiet".to_owned(),
            seed: 1,
        }
    }

    #[test]
    fn nothing_overlaps() {
        let image = BootImage::new(&kernel(0x200_0000), &[1; 5000], &config()).unwrap();
        let mut ranges: Vec<_> = image
            .writes
            .iter()
            .map(|write| (write.physical, write.physical + to_u64(write.bytes.len())))
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:x?}");
        }
        assert!(ranges.last().unwrap().1 <= 64 << 20);
    }

    #[test]
    fn limits_are_told_with_their_numbers() {
        let message = |change: &dyn Fn(&mut BootConfig)| {
            let mut config = config();
            change(&mut config);
            BootImage::new(&kernel(0x200_0000), &[], &config)
                .unwrap_err()
                .to_string()
        };
        assert!(message(&|config| config.cpus = 0).contains("not 0"));
        assert!(message(&|config| config.memory = 1 << 20).contains("not 1 MiB"));
        assert!(message(&|config| config.command_line = "x".repeat(4096)).contains("4097 bytes"));
        let large = BootImage::new(&kernel(0x400_0000), &[0; 100], &config()).unwrap_err();
        assert!(large.to_string().contains("--memory"), "{large}");
    }

    #[test]
    fn the_default_command_line_fits_and_is_one_line() {
        assert!(DEFAULT_COMMAND_LINE.len() < COMMAND_LINE_MAX);
        assert!(!DEFAULT_COMMAND_LINE.contains('\n'));
        assert!(
            !DEFAULT_COMMAND_LINE.contains("  "),
            "{DEFAULT_COMMAND_LINE}"
        );
    }
}
