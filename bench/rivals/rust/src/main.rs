// Measures governor. The argument is a file of 32-bit keys; see the Go program beside it.
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::{env, fs, num::NonZeroU32, time::Instant};

fn measure(name: &str, calls: usize, mut take: impl FnMut(usize) -> bool) {
    let (mut least, mut admitted, windows) = (f64::MAX, 0, 7);
    for _ in 0..windows {
        let began = Instant::now();
        for i in 0..calls {
            admitted += take(i) as usize;
        }
        least = least.min(began.elapsed().as_nanos() as f64 / calls as f64);
    }
    println!("{}\t{:.1}\t{}\t{}", name, least, admitted, windows * calls);
}

fn main() {
    let bytes = fs::read(env::args().nth(1).expect("a file of keys")).expect("the file of keys");
    let keys: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let texts: Vec<String> = keys.iter().map(|k| format!("user-{:08}", k)).collect();
    let quota = Quota::per_second(NonZeroU32::new(1_000_000_000).unwrap());

    let direct: DefaultDirectRateLimiter = RateLimiter::direct(quota);
    measure("governor", keys.len(), |_| direct.check().is_ok());
    let one: DefaultKeyedRateLimiter<u32> = RateLimiter::keyed(quota);
    measure("governor, one key", keys.len(), |_| one.check_key(&7).is_ok());
    let many: DefaultKeyedRateLimiter<u32> = RateLimiter::keyed(quota);
    measure("governor, numbers as keys", keys.len(), |i| many.check_key(&keys[i]).is_ok());
    let named: DefaultKeyedRateLimiter<String> = RateLimiter::keyed(quota);
    measure("governor, texts as keys", keys.len(), |i| named.check_key(&texts[i]).is_ok());
}
