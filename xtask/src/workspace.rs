//! The repository as data: its packages as cargo sees them, its files as git sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// The repository.
#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
    /// `fuzz/` is a workspace of its own: its targets are built with other flags.
    fuzz: Option<Metadata>,
}

/// A file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Its path below the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A package of the repository.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Its name in cargo: `quell-units`.
    pub(crate) name: String,
    /// Its folder's name, which people call it by: `units`.
    pub(crate) folder: String,
    pub(crate) needs: Vec<Need>,
    /// Its programs; in `fuzz` these are the targets.
    pub(crate) programs: Vec<String>,
}

/// A dependency of a package, as its manifest names it.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// The package that is needed.
    pub(crate) name: String,
    pub(crate) why: Why,
    /// Whether it lies in this repository.
    pub(crate) own: bool,
}

/// What a dependency is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    Code,
    Build,
    Tests,
}

impl Workspace {
    /// Asks cargo. Without resolving versions: that would need the registry.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
        let fuzz = metadata.workspace_root.join("fuzz/Cargo.toml");
        let fuzz = fuzz.is_file().then(|| MetadataCommand::new().no_deps().manifest_path(&fuzz).exec());
        Ok(Self { metadata, fuzz: fuzz.transpose().context("cargo metadata of fuzz/")? })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// The packages of the workspace, without `fuzz`.
    pub(crate) fn packages(&self) -> Vec<Package> {
        self.metadata.workspace_packages().into_iter().map(Package::of).collect()
    }

    /// The package of the fuzz targets.
    pub(crate) fn fuzz(&self) -> Option<Package> {
        self.fuzz.as_ref()?.packages.first().map(Package::of)
    }

    /// Where cargo puts the binary of this name.
    pub(crate) fn binary(&self, profile_dir: &str, name: &str) -> PathBuf {
        self.metadata.target_directory.join(profile_dir).join(name).into_std_path_buf()
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// Every text file that is tracked or would be: what `.gitignore` names is not of the repository.
    pub(crate) fn files(&self) -> Result<Vec<SourceFile>> {
        let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let git = Command::new("git").args(listing).current_dir(self.root()).output().context("git ls-files")?;
        ensure!(git.status.success(), "git ls-files: {}", String::from_utf8_lossy(&git.stderr).trim());
        let listed = String::from_utf8(git.stdout).context("a file name that is not UTF-8")?;
        let paths = listed.split_terminator('\0');
        // A deleted file stays listed until it is committed; a capture is no text.
        let read = |path: &str| {
            let text = std::fs::read_to_string(self.root().join(path)).ok()?;
            Some(SourceFile { path: path.into(), text })
        };
        Ok(paths.filter_map(read).collect())
    }
}

impl Package {
    fn of(package: &cargo_metadata::Package) -> Self {
        let folder = package.manifest_path.parent().and_then(|dir| dir.file_name()).unwrap_or_default();
        let needs = package.dependencies.iter().map(|dependency| Need {
            name: dependency.name.clone(),
            why: match dependency.kind {
                DependencyKind::Development => Why::Tests,
                DependencyKind::Build => Why::Build,
                _ => Why::Code,
            },
            own: dependency.path.is_some(),
        });
        let programs = package.targets.iter().filter(|target| target.is_bin()).map(|target| target.name.clone());
        Self {
            name: package.name.to_string(),
            folder: folder.into(),
            needs: needs.collect(),
            programs: programs.collect(),
        }
    }
}
