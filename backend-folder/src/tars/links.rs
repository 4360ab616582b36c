//! What hard and symbolic links inside a shard stand for.

use std::collections::HashMap;

use super::{
    SparseFile,
    scan::{Bytes, Place},
};
use crate::{
    names::without_leading_dot,
    tar::{Archive, Content, Members},
};

/// Symbolic links that may lead to one another before it counts as a loop.
const LONGEST_CHAIN: usize = 16;

/// A member that is a link.
#[derive(Debug)]
pub(super) struct Link {
    /// Path of the member that it means, as members are called.
    pub(super) target: Vec<u8>,
    is_symbolic: bool,
    /// Fragment and part that wait for the bytes.
    pub(super) slot: Option<(u32, u32)>,
}

impl Link {
    pub(super) fn new(
        member: &[u8],
        target: &[u8],
        is_symbolic: bool,
        slot: Option<(u32, u32)>,
    ) -> Self {
        let target = if is_symbolic {
            seen_from(member, target)
        } else {
            without_leading_dot(target).to_vec()
        };
        Self {
            target,
            is_symbolic,
            slot,
        }
    }
}

/// The bytes behind each link, in the links' order; `None` where there are none.
///
/// A hard link means the last member of that name before it, as `tar -x` has it; a symbolic one the last of all.
pub(super) fn resolve(links: &[Link], archive: &mut dyn Archive) -> Vec<Option<Bytes>> {
    let mut wanted: HashMap<&[u8], Option<Meaning>> =
        links.iter().map(|link| (&link.target[..], None)).collect();
    let mut found: Vec<Option<Bytes>> = Vec::new();
    for member in Members::new(archive).map_while(Result::ok) {
        let name = without_leading_dot(&member.name);
        let meaning = match member.content {
            Content::Nothing | Content::Malformed(_) => continue,
            Content::Plain(offset) => Some(Meaning::Bytes(Bytes {
                content: Place::Plain(offset),
                nbytes: member.nbytes,
                head: member.head,
            })),
            Content::Sparse(offset, segments) => {
                let content = Place::Sparse(SparseFile { offset, segments });
                Some(Meaning::Bytes(Bytes {
                    content,
                    nbytes: member.nbytes,
                    head: Vec::new(),
                }))
            }
            Content::HardLink(_) | Content::SymbolicLink(_) => {
                let Some(link) = links.get(found.len()) else {
                    break;
                };
                let meaning = if link.is_symbolic {
                    Some(Meaning::Link(link.target.clone()))
                } else {
                    wanted.get(&link.target[..]).cloned().flatten()
                };
                found.push(match &meaning {
                    Some(Meaning::Bytes(bytes)) => Some(bytes.clone()),
                    _ => None,
                });
                meaning
            }
        };
        if let Some(slot) = wanted.get_mut(name) {
            *slot = meaning;
        }
    }
    found.resize(links.len(), None);
    for (link, found) in links.iter().zip(&mut found) {
        if found.is_none() {
            *found = follow(&wanted, &link.target);
        }
    }
    found
}

#[derive(Debug, Clone)]
enum Meaning {
    Bytes(Bytes),
    Link(Vec<u8>),
}

fn follow(wanted: &HashMap<&[u8], Option<Meaning>>, target: &[u8]) -> Option<Bytes> {
    let mut at = target;
    for _ in 0..LONGEST_CHAIN {
        match wanted.get(at)?.as_ref()? {
            Meaning::Bytes(bytes) => return Some(bytes.clone()),
            Meaning::Link(next) => at = next,
        }
    }
    None
}

/// The path of a symbolic link's target inside the archive.
fn seen_from(member: &[u8], target: &[u8]) -> Vec<u8> {
    let member = without_leading_dot(member);
    let folder = member
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&b""[..], |slash| &member[..slash]);
    let mut path: Vec<&[u8]> = Vec::new();
    for component in folder
        .split(|byte| *byte == b'/')
        .chain(target.split(|byte| *byte == b'/'))
    {
        match component {
            b"" | b"." => {}
            b".." => drop(path.pop()),
            name => path.push(name),
        }
    }
    path.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_links_are_seen_from_their_folder() {
        assert_eq!(seen_from(b"./a/b.jpg", b"../c/d.jpg"), b"c/d.jpg");
        assert_eq!(seen_from(b"b.jpg", b"a.jpg"), b"a.jpg");
        assert_eq!(seen_from(b"b.jpg", b"../../a.jpg"), b"a.jpg");
    }
}
