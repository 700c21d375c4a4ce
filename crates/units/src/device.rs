//! A block device's number, which identifies it, and its name, which is for people.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A device number, as the kernel prints and parses it: `MAJ:MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevNum {
    /// The driver's number (12 bits).
    pub major: u32,
    /// The device's number within the driver (20 bits).
    pub minor: u32,
}

/// The text is not `MAJ:MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a device number: expected MAJ:MIN, such as 253:0")]
pub struct DevNumError;

impl FromStr for DevNum {
    type Err = DevNumError;

    fn from_str(text: &str) -> Result<Self, DevNumError> {
        let (major, minor) = text.split_once(':').ok_or(DevNumError)?;
        let digits = |s: &str| -> Result<u32, DevNumError> {
            // `parse` alone would take a sign.
            if !s.bytes().all(|b| b.is_ascii_digit()) {
                return Err(DevNumError);
            }
            s.parse().map_err(|_| DevNumError)
        };
        Ok(Self { major: digits(major)?, minor: digits(minor)? })
    }
}

impl fmt::Display for DevNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl Serialize for DevNum {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DevNum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The kernel's name of a block device: at most 31 bytes of UTF-8 (`DISK_NAME_LEN` less its NUL), kept in place.
///
/// In place, because a sample of many devices must not allocate one string a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevName {
    bytes: [u8; DevName::LEN_MAX],
    len: u8,
}

impl DevName {
    /// The most bytes a name may have.
    pub const LEN_MAX: usize = 31;

    /// The name, or `None` where it is empty, too long or not UTF-8.
    #[must_use]
    pub fn new(name: &[u8]) -> Option<Self> {
        std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
        let mut bytes = [0; Self::LEN_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { bytes, len: u8::try_from(name.len()).ok()? })
    }

    /// The name as the kernel wrote it. To print it, use `Display`, which escapes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.bytes.get(..usize::from(self.len)).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl fmt::Display for DevName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&crate::escape(self.as_str().as_bytes()))
    }
}

impl fmt::Debug for DevName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for DevName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for DevName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(name.as_bytes()).ok_or_else(|| serde::de::Error::custom("not a device name: 1 to 31 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_is_two_numbers_and_a_colon() {
        assert_eq!("259:7".parse(), Ok(DevNum { major: 259, minor: 7 }));
        for wrong in ["", "8", "8:", ":0", "8:0:0", "-8:0", "+8:0", "8 :0", "sda", "99999999999:0"] {
            assert_eq!(wrong.parse::<DevNum>(), Err(DevNumError), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_is_kept_whole_or_refused() {
        assert_eq!(DevName::new(b"nvme0n1p3").unwrap().as_str(), "nvme0n1p3");
        assert!(DevName::new(b"").is_none());
        assert!(DevName::new(&[b'x'; 31]).is_some());
        assert!(DevName::new(&[b'x'; 32]).is_none());
        assert!(DevName::new(b"\xff").is_none());
    }
}
