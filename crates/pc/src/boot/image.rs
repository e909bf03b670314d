//! Kernel images: bzImage (compressed, with a set-up header) and vmlinux (ELF).

use object::Endianness;
use object::elf::{EM_X86_64, ET_EXEC, FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use raddle_stdx::width::{to_u64, to_usize};

use super::payload::Compression;

const SECTOR: usize = 512;
const SETUP_SECTORS: usize = 0x1F1;
const BOOT_FLAG: usize = 0x1FE;
const HEADER_MAGIC: usize = 0x202;
const PROTOCOL_VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24C;
/// Payload fields exist since this version of the boot protocol.
const PROTOCOL_MIN: u16 = 0x0208;

/// Why a file cannot be booted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    #[error(
        "this is not a Linux kernel: neither a bzImage (no `HdrS` at offset 0x202) nor an ELF file; \
         give a vmlinuz, bzImage or vmlinux for x86-64"
    )]
    NotAKernel,
    #[error(
        "this ELF file is not an x86-64 kernel: {reason}; give a vmlinuz, bzImage or vmlinux for x86-64"
    )]
    WrongElf { reason: String },
    #[error(
        "the kernel image speaks boot protocol {version:#06x}, which says nothing of its payload; \
         kernels since 2.6.26 speak 0x0208 or later"
    )]
    TooOld { version: u16 },
    #[error(
        "the kernel image is compressed with {compression}, which is not supported; rebuild it with \
         CONFIG_KERNEL_GZIP, _XZ, _LZ4 or _ZSTD, or give the vmlinux file"
    )]
    Unsupported { compression: &'static str },
    #[error(
        "the kernel image is compressed in a way not known here (it begins with {magic:02x?}); rebuild it with \
         CONFIG_KERNEL_GZIP, _XZ, _LZ4 or _ZSTD, or give the vmlinux file"
    )]
    UnknownCompression { magic: [u8; 4] },
    #[error("the {compression} data of the image is damaged: {reason}; copy the file again")]
    Damaged {
        compression: &'static str,
        reason: String,
    },
    #[error("the image is cut off: {what} lies beyond its end; copy the file again")]
    Truncated { what: &'static str },
}

/// A part of the kernel with its place in physical memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub physical: u64,
    pub virtual_address: u64,
    /// Range of the ELF file.
    pub file: std::ops::Range<usize>,
    /// Size in memory; what the file does not give is zero.
    pub size: u64,
}

/// An unpacked kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelImage {
    /// The ELF file.
    pub elf: Vec<u8>,
    /// Physical address of the 64-bit entry.
    pub entry: u64,
    pub segments: Vec<Segment>,
    /// The set-up header of a bzImage, copied into the boot parameters.
    pub compression: Option<Compression>,
}

impl KernelImage {
    /// Takes the kernel out of a bzImage or reads it as it is.
    pub fn parse(file: &[u8]) -> Result<Self, ImageError> {
        if file.starts_with(b"\x7FELF") {
            return Self::from_elf(file.to_vec(), None);
        }
        let is_image = file.get(HEADER_MAGIC..HEADER_MAGIC + 4) == Some(b"HdrS")
            && file.get(BOOT_FLAG..BOOT_FLAG + 2) == Some(&[0x55, 0xAA]);
        if !is_image {
            return Err(ImageError::NotAKernel);
        }
        let payload = payload(file)?;
        if payload.starts_with(b"\x7FELF") {
            return Self::from_elf(payload.to_vec(), None);
        }
        let Some(compression) = Compression::detect(payload) else {
            let mut magic = [0; 4];
            let known = payload.len().min(4);
            magic[..known].copy_from_slice(&payload[..known]);
            return Err(ImageError::UnknownCompression { magic });
        };
        Self::from_elf(compression.unpack(payload)?, Some(compression))
    }

    fn from_elf(elf: Vec<u8>, compression: Option<Compression>) -> Result<Self, ImageError> {
        let wrong = |reason: &str| ImageError::WrongElf {
            reason: reason.to_owned(),
        };
        let header = FileHeader64::<Endianness>::parse(elf.as_slice())
            .map_err(|_| wrong("its header is not that of a 64-bit file"))?;
        let endian = header
            .endian()
            .map_err(|_| wrong("its byte order is not known"))?;
        if header.e_machine(endian) != EM_X86_64 {
            return Err(wrong("it is for another processor"));
        }
        if header.e_type(endian) != ET_EXEC {
            return Err(wrong(
                "it is a program, library or module and not a linked kernel",
            ));
        }
        let mut segments = Vec::new();
        for program in header
            .program_headers(endian, elf.as_slice())
            .map_err(|_| wrong("its program headers are damaged"))?
        {
            if program.p_type(endian) != PT_LOAD || program.p_memsz(endian) == 0 {
                continue;
            }
            let start = to_usize(program.p_offset(endian));
            let end = start.saturating_add(to_usize(program.p_filesz(endian)));
            if end > elf.len() {
                return Err(ImageError::Truncated {
                    what: "a program segment",
                });
            }
            segments.push(Segment {
                physical: program.p_paddr(endian),
                virtual_address: program.p_vaddr(endian),
                file: start..end,
                size: program.p_memsz(endian).max(to_u64(end - start)),
            });
        }
        let entry: u64 = header.e_entry(endian);
        let is_kernel = segments
            .iter()
            .any(|segment| (segment.physical..segment.physical + segment.size).contains(&entry));
        if !is_kernel {
            return Err(wrong(
                "its entry lies in no loaded segment at a physical address, as a program's does and a kernel's not",
            ));
        }
        Ok(Self {
            elf,
            entry,
            segments,
            compression,
        })
    }

    /// First physical address after the kernel.
    pub fn end(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.physical + segment.size)
            .max()
            .unwrap_or(0)
    }
}

fn payload(file: &[u8]) -> Result<&[u8], ImageError> {
    let word = |at: usize| {
        file.get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or(ImageError::Truncated {
                what: "the set-up header",
            })
    };
    let version = raddle_stdx::width::low_u16(u64::from(word(PROTOCOL_VERSION)?));
    if version < PROTOCOL_MIN {
        return Err(ImageError::TooOld { version });
    }
    // Zero means four, as in the days of floppy disks.
    let setup = match file[SETUP_SECTORS] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (setup + 1) * SECTOR + word(PAYLOAD_OFFSET)? as usize;
    file.get(start..start + word(PAYLOAD_LENGTH)? as usize)
        .ok_or(ImageError::Truncated {
            what: "the compressed kernel",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 2 * SECTOR];
        file[SETUP_SECTORS] = 1;
        file[BOOT_FLAG..BOOT_FLAG + 2].copy_from_slice(&[0x55, 0xAA]);
        file[HEADER_MAGIC..HEADER_MAGIC + 4].copy_from_slice(b"HdrS");
        file[PROTOCOL_VERSION..PROTOCOL_VERSION + 2].copy_from_slice(&[0x0F, 0x02]);
        let length = u32::try_from(payload.len()).unwrap();
        file[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        file.extend_from_slice(payload);
        file
    }

    #[test]
    fn what_is_no_kernel_is_said_to_be_none() {
        assert_eq!(KernelImage::parse(b"hello"), Err(ImageError::NotAKernel));
        assert_eq!(
            KernelImage::parse(&vec![0; 4096]),
            Err(ImageError::NotAKernel)
        );
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(matches!(
            KernelImage::parse(&own),
            Err(ImageError::WrongElf { .. })
        ));
    }

    #[test]
    fn compressions_are_named() {
        let message = |payload: &[u8]| {
            KernelImage::parse(&bzimage(payload))
                .unwrap_err()
                .to_string()
        };
        assert!(message(&[0x89, b'L', b'Z', b'O']).contains("lzo"));
        assert!(message(b"????").contains("[3f, 3f, 3f, 3f]"));
        assert!(message(&[0x1F, 0x8B, 8, 0, 0]).contains("gzip"));
    }

    #[test]
    fn a_cut_image_is_told_from_a_foreign_one() {
        let mut file = bzimage(&[0x1F, 0x8B, 8, 0, 0]);
        file.truncate(file.len() - 2);
        assert_eq!(
            KernelImage::parse(&file),
            Err(ImageError::Truncated {
                what: "the compressed kernel"
            })
        );
    }
}
