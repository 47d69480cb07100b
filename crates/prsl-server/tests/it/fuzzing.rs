//! The seeds of the fuzz target `requests`, and random changes of them.

mod request;

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The number of changed requests.
const CHANGED: usize = 3000;

/// Texts that matter to the parsers.
const WORDS: [&[u8]; 12] =
    [b"null", b"1e999", b"-1", b"\"\"", b"{", b"]", b"\\n", b"\xff", b"\"a\"", b"\"x\"", b"rule 1: ", b"0.5"];

/// A seed with a few random changes.
fn changed(seed: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..5) {
        let place = random.random_range(0..=bytes.len());
        match random.random_range(0..4) {
            0 => bytes.truncate(place.max(1)),
            1 if place < bytes.len() => bytes[place] = random.random(),
            2 if place < bytes.len() => {
                let end = (place + random.random_range(1..20)).min(bytes.len());
                bytes.drain(place.max(1)..end.max(1).max(place.max(1)));
            }
            _ => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(place..place, word.iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn seeds_and_changed_seeds_are_answered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/requests");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the seeds").map(|it| it.expect("a file").path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect();
    assert!(seeds.len() >= 8);
    seeds.iter().for_each(|seed| request::send(seed));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for index in 0..CHANGED {
        request::send(&changed(&seeds[index % seeds.len()], &mut random));
    }
}
