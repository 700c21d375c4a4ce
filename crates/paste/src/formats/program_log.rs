//! Lines in which a database or its kin says that the disk let it wait.
//!
//! A table of the words that a program uses, and where its time stands in the line.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::{decimal, usec};
use crate::pasted::{Pasted, Statement};

pub(crate) const FORMAT: Format = Format { name: "program log", open };

/// A message of a program's.
struct Message {
    /// The program, by the name of its process.
    by: &'static str,
    /// Words that the line has, all of them.
    words: &'static [&'static str],
    says: Says,
}

/// What a message tells.
enum Says {
    /// What was written took so long to be on the disk: the time behind these words.
    Sync(&'static str),
    /// A sync took longer than this many seconds, which the program does not tell more exactly.
    SyncOver(f64),
    /// A write has been under way so long: the time behind these words.
    Stuck(&'static str),
    /// Something else: it is known as the program's and says nothing more.
    Slow,
}

const fn message(by: &'static str, words: &'static [&'static str], says: Says) -> Message {
    Message { by, words, says }
}

static MESSAGES: &[Message] = &[
    message("etcd", &["sync duration of"], Says::Sync("sync duration of ")),
    message("etcd", &["slow fdatasync"], Says::Sync("took\":\"")),
    message("etcd", &["slow fdatasync"], Says::Slow),
    message("etcd", &["took too long", "etcdserver"], Says::Slow),
    message("etcd", &["apply request took too long"], Says::Slow),
    message("etcd", &["leader failed to send out heartbeat on time"], Says::Slow),
    message("zookeeper", &["fsync-ing the write ahead log", "took"], Says::Sync("took ")),
    message("cockroach", &["disk slowness detected", "ongoing for"], Says::Stuck("ongoing for ")),
    message("cockroach", &["disk stall detected", "ongoing for"], Says::Stuck("ongoing for ")),
    message("cockroach", &["disk stall detected"], Says::Slow),
    // A round of page writes up to the last sync.
    message("mysqld", &["page_cleaner", "intended loop took"], Says::Sync("intended loop took ")),
    message("redis-server", &["Asynchronous AOF fsync is taking too long"], Says::SyncOver(2.0)),
    message("postgres", &["checkpoint complete", "longest="], Says::Sync("longest=")),
    message("elasticsearch", &["health check of [", "] took ["], Says::Sync("] took [")),
    message("elasticsearch", &["writing cluster state took ["], Says::Sync("took [")),
    message("mongod", &["Slow query", "durationMillis"], Says::Slow),
];

/// A sync that took less than this says nothing: databases log some that are none too long.
const SYNC_USEC_MIN: f64 = 100_000.0;

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut log = Log::default();
    log.take(line).then(|| -> Box<dyn Open> { Box::new(log) })
}

#[derive(Default)]
struct Log {
    done: Vec<Statement>,
    sync_p99_usec: Option<f64>,
}

impl Open for Log {
    fn take(&mut self, line: &Line) -> bool {
        // etcd's own check of a disk prints one line beside fio's report.
        if let Some((_, rest)) = line.text.split_once("99th percentile of fsync is ") {
            self.sync_p99_usec = rest.split_ascii_whitespace().next().and_then(decimal).map(|ns| ns / 1000.0);
            return self.sync_p99_usec.is_some();
        }
        let has_all = |message: &&Message| message.words.iter().all(|words| line.text.contains(words));
        for message in MESSAGES.iter().filter(has_all) {
            if let Some(statement) = statement(message, line.text) {
                self.done.extend(statement);
                return true;
            }
        }
        false
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.done.into_iter().for_each(|statement| pasted.state(statement));
        if let (Some(usec), Some(benchmark)) = (self.sync_p99_usec, pasted.benchmarks.last_mut()) {
            benchmark.sync_percentiles_usec.push((99.0, usec));
        }
    }
}

/// What a message states; `None` where its time is not where it should be.
fn statement(message: &Message, text: &str) -> Option<Option<Statement>> {
    let by = message.by.to_owned();
    let time = |words: &str| {
        let (_, rest) = text.split_once(words)?;
        let end = rest.find(['"', ']', ',', ')']).unwrap_or(rest.len());
        let rest = rest.get(..end)?;
        // `2.88s, …`, `3.2 s`, `1234ms which …`.
        let mut fields = rest.split_ascii_whitespace();
        let first = fields.next()?.trim_end_matches(['.', ';']);
        usec(first).or_else(|| usec(&format!("{first}{}", fields.next()?.trim_end_matches(['.', ';']))))
    };
    match message.says {
        Says::Slow => Some(None),
        Says::SyncOver(seconds) => Some(Some(Statement::SlowSync { by, usec: seconds * 1e6 })),
        Says::Sync(words) => {
            let usec = time(words)?;
            Some((usec >= SYNC_USEC_MIN).then_some(Statement::SlowSync { by, usec }))
        }
        Says::Stuck(words) => Some(Some(Statement::StuckWrite { by, seconds: time(words)? / 1e6 })),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;

    #[test]
    fn every_program_tells_its_time_in_its_own_way() {
        for (line, by, seconds) in [
            (
                "2022-01-12 08:20:14.169194 W | wal: sync duration of 2.88067165s, expected less than 1s",
                "etcd",
                2.880_671_65,
            ),
            (
                "{\"level\":\"warn\",\"msg\":\"slow fdatasync\",\"took\":\"1.253s\",\"expected-duration\":\"1s\"}",
                "etcd",
                1.253,
            ),
            (
                "WARN [SyncThread:1] fsync-ing the write ahead log in SyncThread:1 took 1234ms which will adversely effect operation latency",
                "zookeeper",
                1.234,
            ),
            (
                "[Note] InnoDB: page_cleaner: 1000ms intended loop took 5234ms. The settings might not be optimal.",
                "mysqld",
                5.234,
            ),
            (
                "LOG:  checkpoint complete: wrote 1 buffers; write=1.0 s, sync=4.1 s, total=5.2 s; sync files=3, longest=3.9 s, average=1.3 s",
                "postgres",
                3.9,
            ),
            (
                "[WARN ][o.e.m.f.FsHealthService] health check of [/data/nodes/0] took [12006ms] which is above the warn threshold of [5s]",
                "elasticsearch",
                12.006,
            ),
            (
                "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting",
                "redis-server",
                2.0,
            ),
        ] {
            match read(&format!("{line}\n")).statements.as_slice() {
                [Statement::SlowSync { by: told, usec }] => {
                    assert!(told == by && (usec / 1e6 - seconds).abs() < 1e-6, "{line}: {usec}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_write_that_does_not_return_and_a_sync_in_time() {
        let stuck = read(
            "file write stall detected: disk slowness detected: write on file 1.sst (4096 bytes) has been ongoing for 83.5s\n",
        );
        assert_eq!(stuck.statements, [Statement::StuckWrite { by: "cockroach".into(), seconds: 83.5 }]);
        let fast = read("LOG:  checkpoint complete: wrote 1 buffers; sync files=3, longest=0.004 s, average=0.001 s\n");
        assert_eq!((fast.statements.len(), fast.unread.lines), (0, 0));
    }
}
