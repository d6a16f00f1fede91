//! As whom the command runs, and to whom the files that we write belong, under sudo.
//!
//! Users are looked up here, before the fork; what the child does is three system calls.

use anyhow::{Context as _, Result, bail};
use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist, setgid, setgroups, setuid};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

/// As whom the command is to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunAs {
    /// Under sudo the user who called it, otherwise as we do.
    Invoker,
    /// As we do, also under sudo.
    Ourselves,
    /// A named user.
    User(String),
}

/// A user to become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    name: String,
    home: Option<PathBuf>,
}

impl Identity {
    /// Whom to become; `None` to stay who we are.
    ///
    /// # Errors
    /// The user is unknown, or is a named one and we are not root.
    pub fn resolve(run_as: &RunAs) -> Result<Option<Self>> {
        match run_as {
            RunAs::Ourselves => Ok(None),
            RunAs::Invoker => match Sudo::caller()? {
                Some(sudo) => sudo.identity().map(Some),
                None => Ok(None),
            },
            RunAs::User(name) => {
                let user = User::from_name(name)
                    .with_context(|| format!("--user {name}: cannot look the user up"))?;
                let Some(user) = user else {
                    bail!("--user {name}: no such user; `getent passwd` lists those there are");
                };
                if !geteuid().is_root() {
                    bail!("--user {name}: only root can become another user; run it under sudo");
                }
                Self::of(user).map(Some)
            }
        }
    }

    fn of(user: User) -> Result<Self> {
        let name = CString::new(user.name.as_str())?;
        let groups = getgrouplist(&name, user.gid)
            .with_context(|| format!("cannot look up the groups of {}", user.name))?;
        Ok(Self {
            uid: user.uid,
            gid: user.gid,
            groups,
            name: user.name,
            home: Some(user.dir),
        })
    }

    /// The variables that name the user.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let home = self
            .home
            .clone()
            .map(|home| ("HOME", home.into_os_string()));
        ["USER", "LOGNAME"]
            .map(|key| (key, self.name.clone().into()))
            .into_iter()
            .chain(home)
    }

    /// Becomes this user, for good. Async-signal-safe: called between fork and exec.
    ///
    /// Groups first, the user last: afterwards neither may be changed.
    pub(super) fn assume(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setgid(self.gid)?;
        setuid(self.uid)?;
        Ok(())
    }
}

/// The user who called sudo.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Sudo {
    uid: Uid,
    gid: Gid,
    name: String,
}

impl Sudo {
    /// `None` when we are not root by sudo, or when root called it.
    fn caller() -> Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        Self::from_environment(|key| std::env::var(key).ok())
    }

    fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let (Some(uid), Some(gid), Some(name)) =
            (get("SUDO_UID"), get("SUDO_GID"), get("SUDO_USER"))
        else {
            return Ok(None);
        };
        let number = |key: &str, value: &str| {
            value.parse::<u32>().with_context(|| {
                format!("{key} is {value:?}, not a number; unset it, or give --keep-root")
            })
        };
        let uid = Uid::from_raw(number("SUDO_UID", &uid)?);
        let gid = Gid::from_raw(number("SUDO_GID", &gid)?);
        Ok((!uid.is_root()).then_some(Self { uid, gid, name }))
    }

    fn identity(self) -> Result<Identity> {
        let Self { uid, gid, name } = self;
        match User::from_uid(uid).with_context(|| format!("cannot look up user {uid}"))? {
            Some(user) => Identity::of(user),
            // A number is enough to run as; such a user has no other groups and no home.
            None => Ok(Identity {
                uid,
                gid,
                groups: vec![gid],
                name,
                home: None,
            }),
        }
    }
}

/// Gives a file that we made to the user who called sudo; nothing happens without sudo.
///
/// A symbolic link is given away itself, not what it points to: that may be anybody's.
///
/// # Errors
/// The owner cannot be changed.
pub fn chown_back(path: &Path) -> Result<()> {
    let Some(Sudo { uid, gid, name }) = Sudo::caller()? else {
        return Ok(());
    };
    lchown(path, Some(uid.as_raw()), Some(gid.as_raw()))
        .with_context(|| format!("cannot give {} to {name}", path.display()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn sudo(uid: &str, gid: &str) -> Result<Option<Sudo>> {
        Sudo::from_environment(|key| {
            Some(
                match key {
                    "SUDO_UID" => uid,
                    "SUDO_GID" => gid,
                    _ => "dave",
                }
                .to_owned(),
            )
        })
    }

    #[test]
    fn sudo_is_read_from_its_variables() {
        let dave = Sudo {
            uid: Uid::from_raw(1000),
            gid: Gid::from_raw(100),
            name: "dave".to_owned(),
        };
        assert_eq!(sudo("1000", "100").unwrap(), Some(dave));
        assert_eq!(sudo("0", "0").unwrap(), None, "root called it");
        assert_eq!(Sudo::from_environment(|_| None).unwrap(), None, "no sudo");
        let error = sudo("dave", "100").unwrap_err().to_string();
        assert!(
            error.contains("SUDO_UID") && error.contains("--keep-root"),
            "{error}"
        );
    }

    #[test]
    fn a_user_without_passwd_entry_has_one_group_and_keeps_home() {
        let identity = sudo("4000000000", "4000000001")
            .unwrap()
            .unwrap()
            .identity()
            .unwrap();
        assert_eq!(identity.groups, [Gid::from_raw(4_000_000_001)]);
        let variables: Vec<_> = identity.environment().map(|(key, _)| key).collect();
        assert_eq!(variables, ["USER", "LOGNAME"]);
    }

    #[test]
    fn an_unknown_user_is_named() {
        let run_as = RunAs::User("no-such-user".to_owned());
        let error = Identity::resolve(&run_as).unwrap_err().to_string();
        assert!(
            error.contains("no-such-user") && error.contains("getent"),
            "{error}"
        );
    }
}
