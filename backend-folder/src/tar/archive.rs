//! Where the bytes of an archive come from: a file read anywhere, or a gzip stream read forward.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt,
};

use flate2::bufread::MultiGzDecoder;

/// How much a plain archive reads at a time: a header, a small member and the header after it.
const WINDOW: usize = 4096;

/// An archive that is read from the front to the back.
pub(crate) trait Archive {
    /// Fills as much of `buffer` as there is; `offset` never lies before what was read already.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Says whether the archive has all bytes before `end`.
    fn reaches(&mut self, end: u64) -> io::Result<bool>;
}

impl<A: Archive + ?Sized> Archive for &mut A {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }

    fn reaches(&mut self, end: u64) -> io::Result<bool> {
        (**self).reaches(end)
    }
}

/// A file that is no gzip.
#[derive(Debug)]
pub(crate) struct PlainArchive<'a> {
    file: &'a File,
    nbytes: u64,
    window: Vec<u8>,
    start: u64,
}

impl<'a> PlainArchive<'a> {
    pub(crate) fn new(file: &'a File, nbytes: u64) -> Self {
        Self {
            file,
            nbytes,
            window: Vec::new(),
            start: 0,
        }
    }

    fn in_window(&self, offset: u64, nbytes: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.window.get(start..start.checked_add(nbytes)?)
    }
}

impl Archive for PlainArchive<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(bytes) = self.in_window(offset, buffer.len()) {
            buffer.copy_from_slice(bytes);
            return Ok(buffer.len());
        }
        if buffer.len() >= WINDOW {
            return fill(buffer, |rest, done| {
                self.file.read_at(rest, offset + done as u64)
            });
        }
        self.window.resize(WINDOW, 0);
        let read = fill(&mut self.window, |rest, done| {
            self.file.read_at(rest, offset + done as u64)
        })?;
        self.window.truncate(read);
        self.start = offset;
        let there = read.min(buffer.len());
        buffer[..there].copy_from_slice(&self.window[..there]);
        Ok(there)
    }

    fn reaches(&mut self, end: u64) -> io::Result<bool> {
        Ok(end <= self.nbytes)
    }
}

/// A gzip stream of one or several members.
#[derive(Debug)]
pub(crate) struct GzipArchive {
    stream: MultiGzDecoder<BufReader<File>>,
    position: u64,
}

impl GzipArchive {
    pub(crate) fn new(file: File) -> Self {
        Self {
            stream: MultiGzDecoder::new(BufReader::with_capacity(1 << 17, file)),
            position: 0,
        }
    }

    fn advance(&mut self, offset: u64) -> io::Result<bool> {
        let wanted = offset.saturating_sub(self.position);
        let passed = io::copy(&mut (&mut self.stream).take(wanted), &mut io::sink())?;
        self.position += passed;
        Ok(passed == wanted)
    }
}

impl Archive for GzipArchive {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.advance(offset)? {
            return Ok(0);
        }
        let read = fill(buffer, |rest, _| self.stream.read(rest))?;
        self.position += read as u64;
        Ok(read)
    }

    fn reaches(&mut self, end: u64) -> io::Result<bool> {
        self.advance(end)
    }
}

fn fill(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&mut buffer[done..], done) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Looks at the first two bytes: a shard may be compressed whatever it is called.
pub(crate) fn is_gzip(file: &File) -> io::Result<bool> {
    let mut magic = [0; 2];
    let read = fill(&mut magic, |rest, done| file.read_at(rest, done as u64))?;
    Ok(read == 2 && magic == [0x1f, 0x8b])
}
