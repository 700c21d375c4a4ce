//! The table of `docker stats` and `podman stats`: bytes of block I/O a container.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::bytes;
use crate::pasted::{Pasted, Statement};
use quell_units::{Bytes, whole};

pub(crate) const FORMAT: Format = Format { name: "docker stats", open };

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let heading: Vec<String> = cells(line.text);
    let block_at = heading.iter().position(|cell| cell == "BLOCK I/O" || cell == "BLOCK IO")?;
    let name_at = heading.iter().position(|cell| cell == "NAME").unwrap_or(0);
    Some(Box::new(Stats { block_at, name_at, done: Vec::new() }))
}

struct Stats {
    block_at: usize,
    name_at: usize,
    done: Vec<Statement>,
}

impl Open for Stats {
    fn take(&mut self, line: &Line) -> bool {
        let cells = cells(line.text);
        let both = cells.get(self.block_at).and_then(|cell| cell.split_once('/'));
        let Some((read, write)) = both.and_then(|(read, write)| Some((bytes(read)?, bytes(write)?))) else {
            return false;
        };
        let container = cells.get(self.name_at).cloned().unwrap_or_default();
        self.done.push(Statement::BlockIo { container, read: Bytes(whole(read)), write: Bytes(whole(write)) });
        true
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.statements.extend(self.done);
    }
}

/// The cells of a row: two spaces or more are between them.
fn cells(text: &str) -> Vec<String> {
    text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;
    use quell_units::Bytes;

    #[test]
    fn bytes_of_each_container_are_read() {
        let text = "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %     NET I/O       BLOCK I/O        PIDS\n\
            0123456789ab   db        3.12%     4.658GiB / 7.642GiB   60.95%    0B / 0B       11.39GB / 2kB    0\n";
        let io = Statement::BlockIo { container: "db".into(), read: Bytes(11_390_000_000), write: Bytes(2000) };
        assert_eq!(read(text).statements, [io]);
    }
}
