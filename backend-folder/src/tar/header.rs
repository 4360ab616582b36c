//! One 512-byte header of any tar dialect: V7, ustar, GNU, star, PAX.

use super::sparse::Segment;

/// Size of a header, and what every member is padded to.
pub(crate) const BLOCK: usize = 512;

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    HardLink,
    SymbolicLink,
    Folder,
    /// The name of the next member, by GNU.
    LongName,
    /// The link target of the next member, by GNU.
    LongLink,
    /// Extended records for the next member.
    PaxLocal,
    /// Extended records for all members that follow.
    PaxGlobal,
    /// A file with holes, by the old GNU form.
    GnuSparse,
    /// Device, pipe: a header alone.
    Special,
    /// Anything else, with content that is passed over.
    Other,
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) kind: Kind,
    /// Bytes of content that follow, before padding.
    pub(crate) nbytes: u64,
    /// The first four entries of an old GNU sparse map, whether more follow, and the real size.
    pub(crate) sparse: Option<(Vec<Segment>, bool, u64)>,
}

/// What is wrong with a block that should be a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// All zero: the end of the archive.
    End,
    /// The checksum does not fit.
    Checksum,
    /// A number is none, or is negative.
    Number,
}

/// Reads a header.
///
/// # Errors
/// Why the block is none.
pub(crate) fn parse(block: &[u8; BLOCK]) -> Result<Header, NoHeader> {
    if block.iter().all(|byte| *byte == 0) {
        return Err(NoHeader::End);
    }
    check_sum(block)?;
    let name = name(block);
    let kind = kind(block[156], &name);
    // Links, folders and devices may state a size, but nothing follows them.
    let is_bare = matches!(
        kind,
        Kind::HardLink | Kind::SymbolicLink | Kind::Folder | Kind::Special
    );
    let nbytes = if is_bare {
        0
    } else {
        number(&block[124..136])?
    };
    let sparse = match kind {
        Kind::GnuSparse => Some((
            gnu_entries(&block[386..482])?,
            block[482] != 0,
            number(&block[483..495])?,
        )),
        _ => None,
    };
    Ok(Header {
        name,
        link: text(&block[157..257]).to_vec(),
        kind,
        nbytes,
        sparse,
    })
}

/// The entries of an old GNU sparse map: 12 bytes of offset, 12 of length each; an empty one ends them.
///
/// # Errors
/// [`NoHeader::Number`].
pub(crate) fn gnu_entries(bytes: &[u8]) -> Result<Vec<Segment>, NoHeader> {
    let entries = bytes.chunks_exact(24).take_while(|entry| entry[0] != 0);
    entries
        .map(|entry| {
            Ok(Segment {
                at: number(&entry[..12])?,
                nbytes: number(&entry[12..])?,
            })
        })
        .collect()
}

/// True where a block has the mark of a header, whatever its checksum.
pub(crate) fn is_marked(block: &[u8; BLOCK]) -> bool {
    &block[257..262] == b"ustar" && !name(block).is_empty()
}

/// Bytes of content after a header that may be damaged, if it looks like that of a plain file.
pub(crate) fn content_of_file(block: &[u8; BLOCK]) -> Option<u64> {
    (kind(block[156], &name(block)) == Kind::File)
        .then(|| number(&block[124..136]).ok())
        .flatten()
}

fn kind(flag: u8, name: &[u8]) -> Kind {
    match flag {
        // V7 knows folders by their name alone.
        0 | b'0' | b'7' if name.last() == Some(&b'/') => Kind::Folder,
        0 | b'0' | b'7' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::SymbolicLink,
        b'3' | b'4' | b'6' => Kind::Special,
        b'5' => Kind::Folder,
        b'L' => Kind::LongName,
        b'K' => Kind::LongLink,
        b'x' | b'X' => Kind::PaxLocal,
        b'g' => Kind::PaxGlobal,
        b'S' => Kind::GnuSparse,
        _ => Kind::Other,
    }
}

/// The name that a header says, with the prefix of ustar.
pub(crate) fn name(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = text(&block[..100]);
    // GNU writes "ustar  " and uses the place of the prefix for times.
    let prefix = match (&block[257..263], &block[508..512]) {
        (b"ustar\0", b"tar\0") => text(&block[345..476]),
        (b"ustar\0", _) => text(&block[345..500]),
        _ => b"",
    };
    if prefix.is_empty() {
        name.to_vec()
    } else {
        [prefix, b"/", name].concat()
    }
}

fn text(field: &[u8]) -> &[u8] {
    &field[..field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len())]
}

/// A number in octal digits or, where the first bit is set, in binary.
fn number(field: &[u8]) -> Result<u64, NoHeader> {
    if field[0] & 0x80 != 0 {
        if field[0] & 0x40 != 0 {
            return Err(NoHeader::Number);
        }
        let first = u64::from(field[0] & 0x3f);
        return field[1..].iter().try_fold(first, |value, byte| {
            let value = value.checked_mul(256).ok_or(NoHeader::Number)?;
            Ok(value | u64::from(*byte))
        });
    }
    let is_filling = |byte: &u8| *byte == b' ' || *byte == 0;
    let start = field
        .iter()
        .position(|byte| !is_filling(byte))
        .unwrap_or(field.len());
    let digits = &field[start..];
    let end = digits.iter().position(is_filling).unwrap_or(digits.len());
    digits[..end]
        .iter()
        .try_fold(0_u64, |value, byte| match byte {
            b'0'..=b'7' => {
                Ok(value.checked_mul(8).ok_or(NoHeader::Number)? | u64::from(byte - b'0'))
            }
            _ => Err(NoHeader::Number),
        })
}

/// The sum of all bytes with the sum's own field as blanks; some old writers added signed bytes.
fn check_sum(block: &[u8; BLOCK]) -> Result<(), NoHeader> {
    let stated = number(&block[148..156]).map_err(|_| NoHeader::Checksum)?;
    let counted = |position: usize| {
        if (148..156).contains(&position) {
            b' '
        } else {
            block[position]
        }
    };
    let unsigned: u64 = (0..BLOCK)
        .map(|position| u64::from(counted(position)))
        .sum();
    let signed: i64 = (0..BLOCK)
        .map(|position| i64::from(counted(position).cast_signed()))
        .sum();
    if stated == unsigned || i64::try_from(stated) == Ok(signed) {
        Ok(())
    } else {
        Err(NoHeader::Checksum)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ustar header with a right checksum.
    pub(crate) fn header(name: &str, size: &[u8], flag: u8) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..124 + size.len()].copy_from_slice(size);
        block[156] = flag;
        block[257..265].copy_from_slice(b"ustar\x0000");
        seal(&mut block);
        block
    }

    pub(crate) fn seal(block: &mut [u8; BLOCK]) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    proptest! {
        #[test]
        fn no_block_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), BLOCK), sealed: bool, flag: u8) {
            let mut block: [u8; BLOCK] = bytes.try_into().unwrap();
            if sealed {
                block[156] = flag;
                seal(&mut block);
            }
            let parsed = parse(&block);
            prop_assert!(!sealed || parsed != Err(NoHeader::Checksum));
        }

        #[test]
        fn sizes_come_back(size in 0_u64..1 << 33, binary in 0_u64..1 << 62) {
            let octal = parse(&header("a", format!("{size:011o}\0").as_bytes(), b'0')).unwrap();
            prop_assert_eq!(octal.nbytes, size);
            let mut field = [0; 12];
            field[4..].copy_from_slice(&binary.to_be_bytes());
            field[0] = 0x80;
            prop_assert_eq!(parse(&header("a", &field, b'0')).unwrap().nbytes, binary);
        }
    }

    #[test]
    fn hostile_numbers_are_refused() {
        for field in [
            &[0xff; 12][..],
            &[0xbf; 12],
            b"99999999999\0",
            b"-0000000001\0",
            b"7777777777777",
        ] {
            let field = &field[..12];
            let outcome = parse(&header("a", field, b'0'));
            assert!(
                outcome == Err(NoHeader::Number) || outcome.unwrap().nbytes == 0o7777_7777_7777,
                "{field:?}"
            );
        }
    }

    #[test]
    fn a_prefix_counts_in_ustar_alone() {
        let mut block = header("name", b"0", b'0');
        block[345..348].copy_from_slice(b"dir");
        seal(&mut block);
        assert_eq!(parse(&block).unwrap().name, b"dir/name");
        block[257..265].copy_from_slice(b"ustar  \0");
        seal(&mut block);
        assert_eq!(parse(&block).unwrap().name, b"name");
        block[257..265].fill(0);
        seal(&mut block);
        assert_eq!(parse(&block).unwrap().name, b"name");
    }

    #[test]
    fn links_and_folders_have_no_content_whatever_they_state() {
        for flag in *b"123456" {
            assert_eq!(
                parse(&header("a", b"00000001000\0", flag)).unwrap().nbytes,
                0
            );
        }
        assert_eq!(
            parse(&header("a/", b"00000000000\0", 0)).unwrap().kind,
            Kind::Folder
        );
    }
}
