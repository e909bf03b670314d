//! Unpacking what the kernel's build has packed.

use std::io::Read;

use super::image::ImageError;

/// How a kernel image or a module is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Bzip2,
    Lzma,
    Xz,
    Lzo,
    Lz4,
    Zstd,
}

/// Larger results are refused: no kernel is that big, but a damaged file could claim to be.
const SIZE_MAX: usize = 1 << 30;
/// Largest block of the legacy LZ4 format.
const LZ4_BLOCK: usize = 8 << 20;

impl Compression {
    /// By the magic number at the beginning.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        const MAGIC: [(&[u8], Compression); 8] = [
            (&[0x1F, 0x8B], Compression::Gzip),
            (&[0x1F, 0x9E], Compression::Gzip),
            (b"BZh", Compression::Bzip2),
            (&[0x5D, 0, 0], Compression::Lzma),
            (&[0xFD, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
            (&[0x89, b'L', b'Z', b'O'], Compression::Lzo),
            (&[0x02, 0x21, 0x4C, 0x18], Compression::Lz4),
            (&[0x28, 0xB5, 0x2F, 0xFD], Compression::Zstd),
        ];
        MAGIC
            .iter()
            .find(|(magic, _)| bytes.starts_with(magic))
            .map(|(_, compression)| *compression)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Lzma => "lzma",
            Self::Xz => "xz",
            Self::Lzo => "lzo",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Unpacks; what follows the compressed stream is not looked at.
    pub fn unpack(self, bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
        let damaged = |reason: String| ImageError::Damaged {
            compression: self.name(),
            reason,
        };
        match self {
            Self::Gzip => read_all(flate2::read::GzDecoder::new(bytes)).map_err(damaged),
            Self::Bzip2 => read_all(bzip2::read::BzDecoder::new(bytes)).map_err(damaged),
            Self::Xz => read_all(liblzma::read::XzDecoder::new(bytes)).map_err(damaged),
            Self::Lzma => unpack_lzma(bytes).map_err(damaged),
            Self::Lz4 => unpack_lz4(bytes).map_err(damaged),
            Self::Zstd => unpack_zstd(bytes).map_err(damaged),
            Self::Lzo => Err(ImageError::Unsupported { compression: "lzo" }),
        }
    }
}

fn read_all(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    reader
        .take(raddle_stdx::width::to_u64(SIZE_MAX))
        .read_to_end(&mut unpacked)
        .map_err(|error| error.to_string())?;
    Ok(unpacked)
}

fn unpack_lzma(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let stream =
        liblzma::stream::Stream::new_lzma_decoder(u64::MAX).map_err(|error| error.to_string())?;
    read_all(liblzma::read::XzDecoder::new_stream(bytes, stream))
}

fn unpack_zstd(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let decoder =
        ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|error| error.to_string())?;
    read_all(decoder)
}

/// The legacy frame: blocks with a length in front. The kernel's build appends the unpacked size, which a
/// decoder would take for a block: it ends the image instead.
fn unpack_lz4(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut rest = bytes.get(4..).unwrap_or_default();
    let mut unpacked = Vec::new();
    while rest.len() > 4 {
        let length = u32_at(rest, 0) as usize;
        let Some(block) = rest.get(4..4 + length) else {
            return Err(format!("a block of {length} bytes is cut off"));
        };
        let part =
            lz4_flex::block::decompress(block, LZ4_BLOCK).map_err(|error| error.to_string())?;
        unpacked.extend_from_slice(&part);
        if unpacked.len() > SIZE_MAX {
            return Err("unpacked size is beyond reason".to_owned());
        }
        rest = &rest[4 + length..];
    }
    Ok(unpacked)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"the quick brown fox jumps over the lazy dog, again and again and again";

    #[track_caller]
    fn check(packed: &[u8], expected: Compression) {
        let compression = Compression::detect(packed).unwrap();
        assert_eq!(compression, expected);
        assert_eq!(compression.unpack(packed).unwrap(), TEXT);
    }

    #[test]
    fn every_supported_format_comes_back() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(TEXT).unwrap();
        let mut gzip = gzip.finish().unwrap();
        gzip.extend_from_slice(&[1, 2, 3, 4]);
        check(&gzip, Compression::Gzip);

        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        bzip2.write_all(TEXT).unwrap();
        check(&bzip2.finish().unwrap(), Compression::Bzip2);

        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
        xz.write_all(TEXT).unwrap();
        check(&xz.finish().unwrap(), Compression::Xz);

        let zstd =
            ruzstd::encoding::compress_to_vec(TEXT, ruzstd::encoding::CompressionLevel::Fastest);
        check(&zstd, Compression::Zstd);

        let block = lz4_flex::block::compress(TEXT);
        let mut lz4 = vec![0x02, 0x21, 0x4C, 0x18];
        lz4.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
        lz4.extend_from_slice(&block);
        lz4.extend_from_slice(&u32::try_from(TEXT.len()).unwrap().to_le_bytes());
        check(&lz4, Compression::Lz4);
    }

    #[test]
    fn a_cut_stream_is_an_error_and_not_a_short_result() {
        let block = lz4_flex::block::compress(TEXT);
        let mut lz4 = vec![0x02, 0x21, 0x4C, 0x18];
        lz4.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
        lz4.extend_from_slice(&block[..block.len() / 2]);
        assert!(matches!(
            Compression::Lz4.unpack(&lz4),
            Err(ImageError::Damaged { .. })
        ));
        assert!(matches!(
            Compression::Lzo.unpack(&[0x89, b'L', b'Z', b'O']),
            Err(ImageError::Unsupported { .. })
        ));
    }
}
