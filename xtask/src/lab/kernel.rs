//! The kernel that the VM boots: the distribution's own, or the newer one that this repository builds.
//!
//! The stock kernel is downloaded once. What is kept of its package is the image and the modules that the lab loads, in
//! the order of their names: the VM has no `modprobe` and no module index, only `insmod` from the first to the last.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::command::{output, run};
use crate::needs;

/// The folder's number: another list of modules makes a folder of its own.
const STOCK: &str = "stock-1";

/// What the lab uses of a kernel. Left out are null_blk, scsi_debug and zram: they make devices as they are loaded.
const WANTED: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "virtio_scsi",
    "sd_mod",
    "nvme",
    "bfq",
    "kyber-iosched",
    "ext4",
    "xfs",
    "btrfs",
    "overlay",
    "loop",
    "dm_mod",
    "dm_crypt",
    "dm_delay",
    "dm_flakey",
    "dm_snapshot",
    "raid0",
    "raid1",
    "aes",
    "xts",
    "cbc",
    "ecb",
    "essiv",
    "sha256",
    "algif_skcipher",
];

/// Which kernel is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The distribution's, for virtual machines.
    Stock,
    /// The one of `lab/kernel`.
    New,
    /// A file, which needs no modules.
    Path(PathBuf),
}

/// A kernel to boot.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// `stock`, `new`, or the name of the file.
    pub(crate) name: String,
    pub(crate) image: PathBuf,
    /// In the order in which they are to be loaded, which is that of their names.
    pub(crate) modules: Vec<PathBuf>,
}

impl FromStr for Which {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "stock" => Self::Stock,
            "new" => Self::New,
            path => Self::Path(path.into()),
        })
    }
}

/// Finds a kernel, for the repository at `root`. `cache` is where both the stock one and a newer one are kept.
pub(crate) fn find(which: &Which, root: &Path, cache: &Path) -> Result<Kernel> {
    match which {
        Which::Stock => stock(cache),
        Which::New => built(root, cache)?.with_context(|| {
            let places = places(root, cache).map(|place| place.display().to_string()).join(" nor ");
            format!("no newer kernel: QUELL_KERNEL is not set, and there is neither {places}; hint: lab/kernel/build")
        }),
        Which::Path(path) => {
            ensure!(path.is_file(), "there is no kernel at {}; `stock` and `new` are known by name", path.display());
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Kernel { name, image: path.clone(), modules: Vec::new() })
        }
    }
}

/// The newer kernel where there is one, else the stock one.
pub(crate) fn usual(root: &Path, cache: &Path) -> Result<Kernel> {
    built(root, cache)?.map_or_else(|| stock(cache), Ok)
}

fn built(root: &Path, cache: &Path) -> Result<Option<Kernel>> {
    let image = newer(std::env::var_os("QUELL_KERNEL").map(PathBuf::from), root, cache)?;
    Ok(image.map(|image| Kernel { name: "new".into(), image, modules: Vec::new() }))
}

/// A kernel that was named must be there; the places where one may lie may be empty.
fn newer(named: Option<PathBuf>, root: &Path, cache: &Path) -> Result<Option<PathBuf>> {
    if let Some(image) = named.filter(|path| !path.as_os_str().is_empty()) {
        ensure!(image.is_file(), "QUELL_KERNEL is {}, where no file is", image.display());
        return Ok(Some(image));
    }
    Ok(places(root, cache).into_iter().find(|image| image.is_file()))
}

/// Where `lab/kernel/build` puts its kernel, and where one lies beside the repository for several checkouts.
fn places(root: &Path, cache: &Path) -> [PathBuf; 2] {
    [cache.join("bzImage-new"), root.join("../shared/lab/bzImage-full")]
}

fn stock(cache: &Path) -> Result<Kernel> {
    let kept = cache.join(STOCK);
    if !kept.is_dir() {
        std::fs::create_dir_all(cache)?;
        let work = TempDir::new_in(cache)?;
        let made = make_stock(work.path()).context("get the distribution's kernel")?;
        // Only what is complete gets the name. Another run may have been faster, with the same.
        if let Err(error) = std::fs::rename(&made, &kept) {
            ensure!(kept.is_dir(), "{}: {error}", kept.display());
        }
    }
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(kept.join("modules"))? {
        modules.push(entry?.path());
    }
    modules.sort();
    Ok(Kernel { name: "stock".into(), image: kept.join("vmlinuz"), modules })
}

/// Downloads the packages and gives a folder of what is kept of them.
fn make_stock(work: &Path) -> Result<PathBuf> {
    let os_release = std::fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let (metapackage, suffixes) = packages_of(&os_release)?;
    let version = version_of(&output(needs::command("apt-cache")?.args(["depends", metapackage]))?)
        .with_context(|| format!("apt knows no package {metapackage}; hint: apt-get update"))?;
    let unpacked = work.join("unpacked");
    for kind in suffixes {
        download(&format!("{kind}-{version}"), work, &unpacked)?;
    }
    unify_usr(&unpacked)?;
    run(needs::command("depmod")?.arg("-b").arg(&unpacked).arg(&version))?;
    let kept = work.join("kept");
    std::fs::create_dir_all(kept.join("modules"))?;
    std::fs::copy(unpacked.join(format!("boot/vmlinuz-{version}")), kept.join("vmlinuz"))?;
    let modules = load_order(&unpacked, &version)?;
    ensure!(!modules.is_empty(), "modprobe finds none of the modules that the lab wants in {version}");
    for (at, module) in modules.iter().enumerate() {
        keep_module(module, at, &kept.join("modules"))?;
    }
    Ok(kept)
}

/// The package that depends on the current kernel for virtual machines, and what that kernel's packages begin with.
fn packages_of(os_release: &str) -> Result<(&'static str, &'static [&'static str])> {
    let id = os_release.lines().find_map(|line| line.strip_prefix("ID=")).unwrap_or_default().trim_matches('"');
    match id {
        "debian" => Ok(("linux-image-cloud-amd64", &["linux-image"])),
        "ubuntu" => Ok(("linux-image-virtual", &["linux-image", "linux-modules"])),
        other => bail!("no stock kernel is known for the distribution `{other}`; hint: --kernel PATH"),
    }
}

/// What stands behind `linux-image-` in the first dependency, as `apt-cache depends` prints them.
fn version_of(depends: &str) -> Option<String> {
    let mut needed = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    needed.find_map(|package| package.strip_prefix("linux-image-")).map(str::to_owned)
}

fn download(package: &str, work: &Path, into: &Path) -> Result<()> {
    let folder = TempDir::new_in(work)?;
    // apt's own user could not write here, and root would be warned of that.
    let mut apt = needs::command("apt-get")?;
    apt.args(["-qq", "-o", "APT::Sandbox::User=root", "download", package]).current_dir(folder.path());
    output(&mut apt).context("hint: an old list of packages asks for what is no longer there; apt-get update")?;
    let deb = std::fs::read_dir(folder.path())?.next().context("apt-get download gave no file")??;
    run(needs::command("dpkg-deb")?.arg("-x").arg(deb.path()).arg(into))
}

/// Makes `lib/modules` and `usr/lib/modules` one: packages use either, and so do versions of kmod.
fn unify_usr(unpacked: &Path) -> Result<()> {
    let places = [unpacked.join("lib/modules"), unpacked.join("usr/lib/modules")];
    let [old, new] = &places;
    let (there, absent) = if old.is_dir() { (old, new) } else { (new, old) };
    if !absent.exists() {
        std::fs::create_dir_all(absent.parent().unwrap_or(unpacked))?;
        std::os::unix::fs::symlink(std::path::absolute(there)?, absent)?;
    }
    Ok(())
}

fn load_order(unpacked: &Path, version: &str) -> Result<Vec<PathBuf>> {
    let mut modprobe = needs::command("modprobe")?;
    // Without a configuration: the host's own options and blacklists are not the VM's.
    modprobe.args(["-C", "/dev/null", "-S", version, "-d"]).arg(unpacked);
    modprobe.args(["--show-depends", "-a"]).args(WANTED);
    // It fails when one name is unknown, which depends on the kernel, but tells of all others.
    let shown = modprobe.output().context("modprobe")?;
    Ok(parse_depends(&String::from_utf8_lossy(&shown.stdout)))
}

/// Lines are `insmod PATH ` or `builtin NAME`. Each module comes after those that it needs, and once for each that needs it.
fn parse_depends(shown: &str) -> Vec<PathBuf> {
    let mut modules: Vec<PathBuf> = Vec::new();
    for path in shown.lines().filter_map(|line| line.strip_prefix("insmod ")) {
        let path = PathBuf::from(path.trim_end());
        if !modules.contains(&path) {
            modules.push(path);
        }
    }
    modules
}

/// Puts a module at its place in the order. Unpacked, because the VM's `insmod` cannot unpack.
fn keep_module(module: &Path, at: usize, folder: &Path) -> Result<()> {
    let name = module.file_name().and_then(OsStr::to_str).context("a module without a name")?;
    let (stem, packing) = name.split_once(".ko").with_context(|| format!("{name} is no module"))?;
    let target = folder.join(format!("{at:03}-{stem}.ko"));
    let unpacker = match packing {
        "" => return std::fs::copy(module, &target).map(drop).with_context(|| module.display().to_string()),
        ".xz" => "xz",
        ".zst" => "zstd",
        ".gz" => "gzip",
        other => bail!("{name}: `{other}` is no known packing"),
    };
    run(needs::command(unpacker)?.arg("-dc").arg(module).stdout(File::create(&target)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "insmod /k/lib/modules/6.1.0-57-cloud-amd64/kernel/drivers/virtio/virtio_ring.ko 
insmod /k/lib/modules/6.1.0-57-cloud-amd64/kernel/drivers/virtio/virtio.ko 
insmod /k/lib/modules/6.1.0-57-cloud-amd64/kernel/drivers/virtio/virtio_ring.ko 
insmod /k/lib/modules/6.1.0-57-cloud-amd64/kernel/drivers/virtio/virtio.ko 
insmod /k/lib/modules/6.1.0-57-cloud-amd64/kernel/drivers/block/virtio_blk.ko 
builtin cbc
";

    #[test]
    fn modules_keep_their_order_and_come_once() {
        let order = parse_depends(SHOWN);
        let names: Vec<_> = order.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["virtio_ring.ko", "virtio.ko", "virtio_blk.ko"]);
    }

    #[test]
    fn the_distribution_decides_on_the_packages() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n";
        assert_eq!(packages_of(debian).unwrap().0, "linux-image-cloud-amd64");
        let ubuntu = packages_of("ID=\"ubuntu\"\nID_LIKE=debian\n").unwrap();
        assert_eq!(ubuntu, ("linux-image-virtual", &["linux-image", "linux-modules"][..]));
        assert!(packages_of("ID=fedora\n").unwrap_err().to_string().contains("fedora"));
    }

    #[test]
    fn the_version_is_read_from_what_the_package_depends_on() {
        let depends = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-57-cloud-amd64\n";
        assert_eq!(version_of(depends).as_deref(), Some("6.1.0-57-cloud-amd64"));
        assert_eq!(version_of(""), None);
    }

    #[test]
    fn a_kernel_that_was_named_must_be_there() {
        let cache = TempDir::new().unwrap();
        let nowhere = Path::new("/no/such/folder");
        assert!(newer(Some("/no/such/kernel".into()), nowhere, cache.path()).is_err());
        let image = cache.path().join("bzImage-new");
        std::fs::write(&image, b"").unwrap();
        assert_eq!(newer(None, nowhere, cache.path()).unwrap(), Some(image.clone()));
        assert_eq!(newer(Some(image.clone()), nowhere, nowhere).unwrap(), Some(image));
        assert_eq!(newer(None, nowhere, nowhere).unwrap(), None);
        assert_eq!(places(Path::new("/w/main"), nowhere)[1], Path::new("/w/main/../shared/lab/bzImage-full"));
    }

    #[test]
    fn a_kept_module_is_unpacked_under_its_place() {
        let folder = TempDir::new().unwrap();
        let module = folder.path().join("nvme.ko");
        std::fs::write(&module, b"elf").unwrap();
        keep_module(&module, 7, folder.path()).unwrap();
        assert_eq!(std::fs::read(folder.path().join("007-nvme.ko")).unwrap(), b"elf");
        assert!(keep_module(Path::new("/k/nvme.ko.lz4"), 7, folder.path()).is_err());
    }

    #[test]
    fn anything_but_the_two_names_is_a_path() {
        assert_eq!("stock".parse(), Ok(Which::Stock));
        assert_eq!("new".parse(), Ok(Which::New));
        assert_eq!("./bzImage".parse(), Ok(Which::Path("./bzImage".into())));
    }
}
