//! Store URIs: `scheme://[user[:password]@]host[,host…][:port]/segment/segment[?option=value&…]`.
//!
//! Pure text: nothing here looks at a disk or a network, panics, or shows a secret. What a scheme means is for others to say.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use crate::error::{Error, ErrorKind, Result};

mod percent;

pub use percent::{percent_decode, percent_encode, percent_encode_component};

/// Splits `scheme:rest`; `None` where the text does not begin with a scheme (a letter, then letters, digits, `+`, `-`, `.`).
pub fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let first = scheme.bytes().next()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (first.is_ascii_alphabetic() && scheme.bytes().all(allowed)).then_some((scheme, rest))
}

/// A text that is used and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for whoever has to send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// One server, without brackets around an IPv6 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name or address.
    pub name: String,
    /// Port, where one is given: its own, or that at the end of the list.
    pub port: Option<u16>,
}

/// A network URI in its parts, all of them percent-decoded.
///
/// `Display` is the URI without user, password and the values of secret options; `Debug` hides the secrets too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The user.
    pub user: Option<Secret>,
    /// The password.
    pub password: Option<Secret>,
    /// The servers, at least one; for `s3` the bucket.
    pub hosts: Vec<Host>,
    /// The components of the path; empty ones are left out.
    pub segments: Vec<String>,
    options: BTreeMap<String, Secret>,
}

impl Uri {
    /// Takes a URI apart.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] that says which component is wrong, without showing any that could hold a secret.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((scheme, rest)) = split_scheme(text) else {
            return Err(wrong(
                "a URI begins with a scheme and a colon, as in s3://bucket/dataset",
            ));
        };
        let scheme = scheme.to_ascii_lowercase();
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(wrong(format!("two slashes are missing after {scheme}:"))
                .hint(format!("write {scheme}://host/dataset")));
        };
        // An @ behind the host may end a password with a / or ? in it: going on would show the password as path or port.
        let authority_bytes = rest.find(['/', '?']).unwrap_or(rest.len());
        if rest[authority_bytes..].contains('@') {
            return Err(wrong("an @ stands behind the host").hint(LOGIN_HINT));
        }
        if rest.contains('#') {
            return Err(wrong("a # cannot stand in a URI").hint("write a # as %23"));
        }
        if rest
            .chars()
            .any(|letter| letter.is_whitespace() || letter.is_control())
        {
            return Err(wrong("blanks cannot stand in a URI").hint("write a blank as %20"));
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = login.map_or(Ok((None, None)), parse_login)?;
        Ok(Self {
            scheme,
            user,
            password,
            hosts: parse_hosts(hosts)?,
            segments: path
                .split('/')
                .filter(|segment| !segment.is_empty())
                .map(|segment| decode(segment, "path"))
                .collect::<Result<_>>()?,
            options: query.map_or(Ok(BTreeMap::new()), parse_options)?,
        })
    }

    /// The value of an option of the query.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(Secret::reveal)
    }

    /// Refuses options that a scheme does not have.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming the first unknown option and the known ones.
    pub fn check_options(&self, known: &[&str]) -> Result<()> {
        match self
            .options
            .keys()
            .find(|name| !known.contains(&name.as_str()))
        {
            Some(name) => Err(wrong(format!("{}:// has no option {name:?}", self.scheme))
                .hint(format!("its options are: {}", known.join(", ")))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.scheme)?;
        for (number, Host { name, port }) in self.hosts.iter().enumerate() {
            out.write_str(if number > 0 { "," } else { "" })?;
            if name.contains(':') {
                write!(out, "[{name}]")?;
            } else {
                out.write_str(&percent_encode_component(name.as_bytes()))?;
            }
            if let Some(port) = port {
                write!(out, ":{port}")?;
            }
        }
        for segment in &self.segments {
            write!(out, "/{}", percent_encode_component(segment.as_bytes()))?;
        }
        for (number, (name, value)) in self.options.iter().enumerate() {
            let value = if is_secret(name) {
                "***"
            } else {
                &percent_encode_component(value.reveal().as_bytes())
            };
            let separator = if number > 0 { '&' } else { '?' };
            write!(
                out,
                "{separator}{}={value}",
                percent_encode_component(name.as_bytes())
            )?;
        }
        Ok(())
    }
}

/// True for options whose value lets somebody in: names of files that hold one (`token-file`) are no secret.
fn is_secret(option: &str) -> bool {
    let name = option.to_ascii_lowercase();
    let words = [
        "password",
        "passwd",
        "secret",
        "token",
        "credential",
        "signature",
        "key",
    ];
    !name.ends_with("file") && words.iter().any(|word| name.contains(word))
}

/// What most often is wrong with a login.
const LOGIN_HINT: &str = "a URI is scheme://host[:port]/…; behind a scheme write / as %2F, @ as %40, : as %3A, ? as %3F in user, password and names";

fn wrong(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Usage, message).during("open")
}

fn decode(text: &str, component: &str) -> Result<String> {
    String::from_utf8(percent_decode(text)?).map_err(|_| {
        wrong(format!(
            "the {component} of the URI is no UTF-8 once it is decoded"
        ))
    })
}

fn parse_login(login: &str) -> Result<(Option<Secret>, Option<Secret>)> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let decode = |text: &str| decode(text, "user or password").map(Secret);
    Ok((Some(decode(user)?), password.map(decode).transpose()?))
}

fn parse_hosts(text: &str) -> Result<Vec<Host>> {
    let mut hosts = text
        .split(',')
        .map(parse_host)
        .collect::<Result<Vec<_>>>()?;
    let common = hosts.last().and_then(|host| host.port);
    for host in &mut hosts {
        host.port = host.port.or(common);
    }
    Ok(hosts)
}

/// Nothing of a host is shown: what does not parse may be a password with an `@` or `/` that was not encoded.
fn parse_host(text: &str) -> Result<Host> {
    let failed = |message: &'static str| Err(wrong(message).hint(LOGIN_HINT));
    let (name, port) = match text.strip_prefix('[') {
        Some(address) => match address.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                match port.strip_prefix(':') {
                    Some(port) => (address.to_owned(), Some(port)),
                    None if port.is_empty() => (address.to_owned(), None),
                    None => return failed("something follows the IPv6 address that is no port"),
                }
            }
            _ => return failed("there is no IPv6 address between the brackets"),
        },
        None => match text.split_once(':') {
            Some((name, port)) => (decode(name, "host")?, Some(port)),
            None => (decode(text, "host")?, None),
        },
    };
    if name.is_empty() {
        return failed("the URI names no host");
    }
    if name.contains(|letter: char| {
        letter.is_whitespace() || letter.is_control() || "/@?#[]".contains(letter)
    }) {
        return failed("the host has letters that no host can have");
    }
    let port = match port {
        Some(digits) => match digits.parse() {
            Ok(port) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(port),
            _ => return failed("the port is no number from 0 to 65535"),
        },
        None => None,
    };
    Ok(Host { name, port })
}

fn parse_options(query: &str) -> Result<BTreeMap<String, Secret>> {
    let mut options = BTreeMap::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match options.entry(decode(name, "query")?) {
            Entry::Vacant(place) => place.insert(Secret(decode(value, "query")?)),
            Entry::Occupied(taken) => {
                return Err(wrong(format!("the option {:?} comes twice", taken.key())));
            }
        };
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
