//! What `decode` promises, on real and odd pictures.

#[cfg(test)]
mod bug_log;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod collate;
#[cfg(test)]
mod geometry;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod support;
