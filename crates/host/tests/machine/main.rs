//! The machine, read from trees of files that a test makes, and from the host that runs the test.

#[cfg(test)]
mod capture;
#[cfg(test)]
mod cgroups;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod live;
#[cfg(test)]
mod names;
#[cfg(test)]
mod odd_trees;
#[cfg(test)]
mod open_files;
#[cfg(test)]
mod stacks;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod tree;
