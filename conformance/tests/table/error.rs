//! The only place that knows the driver's errors.

use loader_core::{Error, ErrorKind};

use super::driver::DriverError;

pub fn from_driver(error: DriverError) -> Error {
    let kind = match error {
        DriverError::Busy => ErrorKind::Overloaded,
        DriverError::NoHost => ErrorKind::Unavailable,
    };
    Error::new(kind, "the table cannot be reached")
        .in_store("table:")
        .caused_by(error)
}
