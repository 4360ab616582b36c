//! The members of an archive, one after another, as its headers tell.

use loader_core::{ErrorKind, identity::display_bytes};

use super::{
    archive::Archive,
    header::{self, BLOCK, Header, Kind, NoHeader},
    pax::{self, Extended},
    sparse::{self, MapReader, Segment},
};

/// Longest name or set of extended records that is read, bytes.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// Most blocks of a sparse map that are read.
const LONGEST_MAP: usize = 4096;

/// Members up to this size have their content read with the header: labels are that small.
pub(crate) const HEAD: usize = 64;

/// A member that is a file, or that means one.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    /// Size in bytes, holes included.
    pub(crate) nbytes: u64,
    pub(crate) content: Content,
    /// The whole content of a plain file of at most [`HEAD`] bytes, else empty.
    pub(crate) head: Vec<u8>,
}

/// Where a member's bytes are.
#[derive(Debug)]
pub(crate) enum Content {
    /// At this offset.
    Plain(u64),
    /// From this offset on, run after run.
    Sparse(u64, Box<[Segment]>),
    /// They cannot be known, and why.
    Malformed(String),
    /// Those of the member with this path.
    HardLink(Vec<u8>),
    /// Those of the member at this path, seen from the link's own folder.
    SymbolicLink(Vec<u8>),
    /// There are none: a folder, a device.
    Nothing,
}

/// Why an archive cannot be read any further.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    /// The member in which it happened, where its name is known.
    pub(crate) member: Option<Vec<u8>>,
}

impl Cut {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            member: None,
        }
    }

    fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    fn io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::UnexpectedEof => ErrorKind::Truncated,
            Io::InvalidData | Io::InvalidInput => ErrorKind::Malformed,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string())
    }

    fn perhaps_in_member(self, name: Option<Vec<u8>>) -> Self {
        match name {
            Some(name) => self.in_member(&name),
            None => self,
        }
    }

    fn in_member(mut self, name: &[u8]) -> Self {
        self.member.get_or_insert_with(|| name.to_vec());
        self
    }
}

/// What headers before a member's own say of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Announced {
    extended: Option<Extended>,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl Announced {
    fn name(&self) -> Option<Vec<u8>> {
        let extended = self.extended.as_ref();
        let path = extended.and_then(|extended| {
            extended
                .sparse
                .name
                .clone()
                .or_else(|| extended.path.clone())
        });
        path.or_else(|| self.name.clone())
    }
}

/// Walks through an archive. After an `Err` it ends.
#[derive(Debug)]
pub(crate) struct Members<A> {
    archive: A,
    offset: u64,
    global: Extended,
    is_over: bool,
}

impl<A: Archive> Iterator for Members<A> {
    type Item = Result<Member, Cut>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.advance().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<A: Archive> Members<A> {
    pub(crate) fn new(archive: A) -> Self {
        Self {
            archive,
            offset: 0,
            global: Extended::default(),
            is_over: false,
        }
    }

    fn advance(&mut self) -> Result<Option<Member>, Cut> {
        let mut announced = Announced::default();
        loop {
            let mut block = [0; BLOCK];
            let read = self
                .archive
                .read_at(self.offset, &mut block)
                .map_err(|error| Cut::io(&error))?;
            let parsed = header::parse(&block);
            if read < BLOCK && parsed != Err(NoHeader::End) {
                let cut = Cut::new(ErrorKind::Truncated, "the archive ends inside a header");
                // What says how the name begins stands at the end of a header.
                let name = announced
                    .name()
                    .or_else(|| (read >= 500).then(|| header::name(&block)));
                return Err(cut.perhaps_in_member(name));
            }
            let at = self.offset;
            self.offset += BLOCK as u64;
            let header = match parsed {
                Ok(header) => header,
                Err(NoHeader::End) if announced == Announced::default() => return Ok(None),
                Err(NoHeader::End) => {
                    let cut = Cut::new(
                        ErrorKind::Truncated,
                        "the archive ends after the name of a member",
                    );
                    return Err(cut.perhaps_in_member(announced.name()));
                }
                Err(fault) => return self.damaged(&block, at, fault, announced.name()).map(Some),
            };
            match header.kind {
                Kind::PaxLocal => {
                    let known = announced
                        .extended
                        .take()
                        .unwrap_or_else(|| self.global.clone());
                    announced.extended = Some(self.records(&header, known)?);
                }
                Kind::PaxGlobal => {
                    let known = self.global.clone();
                    self.global = self.records(&header, known)?;
                }
                Kind::LongName => announced.name = Some(self.long_text(&header)?),
                Kind::LongLink => announced.link = Some(self.long_text(&header)?),
                _ => return self.member(header, announced).map(Some),
            }
        }
    }

    /// A header whose checksum or size is wrong: where its size leads to another header, the archive is read on from there.
    fn damaged(
        &mut self,
        block: &[u8; BLOCK],
        at: u64,
        fault: NoHeader,
        announced: Option<Vec<u8>>,
    ) -> Result<Member, Cut> {
        let message = match fault {
            NoHeader::Number => format!("the tar header at byte {at} has a size that is no number"),
            _ => format!("no tar header at byte {at}: its checksum does not fit"),
        };
        let name = announced.or_else(|| header::is_marked(block).then(|| header::name(block)));
        let cut = || Cut::malformed(message.clone()).perhaps_in_member(name.clone());
        let (Some(known), Some(nbytes)) = (&name, header::content_of_file(block)) else {
            return Err(cut());
        };
        let next = self
            .offset
            .checked_add(nbytes)
            .and_then(|end| end.checked_next_multiple_of(BLOCK as u64));
        let next = next.ok_or_else(cut)?;
        let mut block = [0; BLOCK];
        let is_there = self
            .archive
            .reaches(next)
            .and_then(|reaches| Ok(reaches && self.archive.read_at(next, &mut block)? == BLOCK));
        if !is_there.map_err(|error| Cut::io(&error))? || header::parse(&block).is_err() {
            return Err(cut());
        }
        self.offset = next;
        Ok(Member {
            name: known.clone(),
            nbytes: 0,
            content: Content::Malformed(message),
            head: Vec::new(),
        })
    }

    fn member(&mut self, header: Header, announced: Announced) -> Result<Member, Cut> {
        let Announced {
            extended,
            name: long_name,
            link: long_link,
        } = announced;
        let Extended {
            path,
            link,
            nbytes,
            sparse,
        } = extended.unwrap_or_else(|| self.global.clone());
        let name = sparse
            .name
            .clone()
            .or(path)
            .or(long_name)
            .unwrap_or(header.name);
        let link = link.or(long_link).unwrap_or(header.link);
        let stored = match header.kind {
            Kind::File | Kind::GnuSparse | Kind::Other => nbytes.unwrap_or(header.nbytes),
            _ => 0,
        };
        let content = match header.kind {
            Kind::HardLink => Content::HardLink(link),
            Kind::SymbolicLink => Content::SymbolicLink(link),
            Kind::File if sparse.is_present => return self.posix_sparse(name, &sparse, stored),
            Kind::File if name.last() != Some(&b'/') => Content::Plain(self.offset),
            Kind::GnuSparse => return self.gnu_sparse(name, header.sparse, stored),
            _ => Content::Nothing,
        };
        let mut head = Vec::new();
        if let (Content::Plain(offset), Ok(size @ 1..=HEAD)) = (&content, usize::try_from(stored)) {
            head.resize(size, 0);
            let read = self
                .archive
                .read_at(*offset, &mut head)
                .map_err(|error| Cut::io(&error).in_member(&name))?;
            head.truncate(read);
        }
        self.skip(stored, &name)?;
        Ok(Member {
            name,
            nbytes: stored,
            content,
            head,
        })
    }

    fn gnu_sparse(
        &mut self,
        name: Vec<u8>,
        map: Option<(Vec<Segment>, bool, u64)>,
        stored: u64,
    ) -> Result<Member, Cut> {
        // Without its map nobody knows where the content begins, and so where the next header is.
        let malformed = || Cut::malformed("the map of a sparse file is malformed").in_member(&name);
        let (mut segments, mut goes_on, nbytes) = map.ok_or_else(malformed)?;
        for _ in 0..LONGEST_MAP {
            if !goes_on {
                break;
            }
            let block = self.block(&name)?;
            segments.extend(header::gnu_entries(&block[..504]).map_err(|_| malformed())?);
            goes_on = block[504] != 0;
        }
        if goes_on {
            return Err(malformed());
        }
        self.sparse(name, Some(segments), nbytes, stored)
    }

    fn posix_sparse(
        &mut self,
        name: Vec<u8>,
        records: &pax::SparseRecords,
        mut stored: u64,
    ) -> Result<Member, Cut> {
        let nbytes = records.real_nbytes.unwrap_or(0);
        let segments = match (records.major.unwrap_or(0), records.minor.unwrap_or(0)) {
            (0, _) => records.segments(),
            (1, 0) => {
                let (mut reader, mut map) = (MapReader::default(), Ok(None));
                while matches!(map, Ok(None)) && stored >= BLOCK as u64 {
                    map = reader.block(&self.block(&name)?);
                    stored -= BLOCK as u64;
                }
                map.ok().flatten()
            }
            _ => None,
        };
        self.sparse(
            name,
            segments.filter(|_| records.real_nbytes.is_some()),
            nbytes,
            stored,
        )
    }

    /// A sparse member whose content begins here; its map may turn out to be none.
    fn sparse(
        &mut self,
        name: Vec<u8>,
        segments: Option<Vec<Segment>>,
        nbytes: u64,
        stored: u64,
    ) -> Result<Member, Cut> {
        let segments = segments.and_then(|segments| sparse::checked(segments, nbytes, stored));
        let content = match segments {
            Some(segments) => Content::Sparse(self.offset, segments),
            None => Content::Malformed("the map of a sparse member makes no sense".to_owned()),
        };
        self.skip(stored, &name)?;
        Ok(Member {
            name,
            nbytes,
            content,
            head: Vec::new(),
        })
    }

    /// One block of a map that lies between a header and its content.
    fn block(&mut self, name: &[u8]) -> Result<[u8; BLOCK], Cut> {
        let mut block = [0; BLOCK];
        let read = self
            .archive
            .read_at(self.offset, &mut block)
            .map_err(|error| Cut::io(&error).in_member(name))?;
        if read < BLOCK {
            return Err(truncated(name));
        }
        self.offset += BLOCK as u64;
        Ok(block)
    }

    /// Passes over content, all of which must be there; the padding after the last member need not be.
    fn skip(&mut self, nbytes: u64, name: &[u8]) -> Result<(), Cut> {
        let end = self
            .offset
            .checked_add(nbytes)
            .ok_or_else(|| truncated(name))?;
        if !self
            .archive
            .reaches(end)
            .map_err(|error| Cut::io(&error).in_member(name))?
        {
            return Err(truncated(name));
        }
        self.offset = end
            .checked_next_multiple_of(BLOCK as u64)
            .ok_or_else(|| truncated(name))?;
        Ok(())
    }

    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, Cut> {
        if header.nbytes > LONGEST_EXTENSION {
            let message = format!(
                "a name or a set of extended records of {} bytes; the limit is {LONGEST_EXTENSION}",
                header.nbytes
            );
            return Err(Cut::new(ErrorKind::TooLarge, message));
        }
        let mut bytes = vec![0; usize::try_from(header.nbytes).unwrap_or(0)];
        let read = self
            .archive
            .read_at(self.offset, &mut bytes)
            .map_err(|error| Cut::io(&error))?;
        if read < bytes.len() {
            return Err(Cut::new(
                ErrorKind::Truncated,
                "the archive ends inside a name or extended records",
            ));
        }
        self.skip(header.nbytes, b"")?;
        Ok(bytes)
    }

    fn records(&mut self, header: &Header, known: Extended) -> Result<Extended, Cut> {
        let bytes = self.extension(header)?;
        pax::parse(&bytes, known).ok_or_else(|| Cut::malformed("extended records are malformed"))
    }

    fn long_text(&mut self, header: &Header) -> Result<Vec<u8>, Cut> {
        let mut bytes = self.extension(header)?;
        bytes.truncate(
            bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len()),
        );
        Ok(bytes)
    }
}

fn truncated(name: &[u8]) -> Cut {
    Cut::new(
        ErrorKind::Truncated,
        format!("the archive ends inside {}", display_bytes(name)),
    )
    .in_member(name)
}
