use cil_trace::trace::*;
use cil_trace_core::probes::Set;
use std::time::*;
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    env_logger::init();
    let t = Instant::now();
    let kernel = RunningKernel::read()?;
    eprintln!("kernel {:?}", t.elapsed());
    let t = Instant::now();
    let mut tr = Tracer::load(
        &kernel,
        &Options {
            sets: Set::ALL.to_vec(),
            filtered: false,
            diagnostics: std::env::var("DIAG").is_ok(),
        },
    )?;
    eprintln!("load {:?}", t.elapsed());
    for o in &tr.outcomes {
        eprintln!("{:18} {:?} | {} | {}", o.probe, o.outcome, o.how, o.reason);
    }
    let st = aya::sys::enable_stats(aya::sys::Stats::RunTime)?;
    for a in std::env::args().skip(1).collect::<Vec<_>>() {
        let (d, f) = a.split_once('=').unwrap();
        let (maj, min) = d.split_once(':').unwrap();
        tr.maps.set_device(
            maj.parse::<u32>()? << 20 | min.parse::<u32>()?,
            cil_trace_common::scope::Scope {
                flags: f.parse()?,
                above: 0,
            },
        )?;
    }
    let n = kernel
        .symbols
        .ranges(cil_trace_common::function::Group::ALL)?
        .len() as u32;
    tr.arm(n)?;
    let mut r = Reader::new(0);
    println!("ready");
    let mut s = String::new();
    std::io::stdin().read_line(&mut s)?;
    tr.disarm()?;
    let t = Instant::now();
    let tick = r.tick(&mut tr, &kernel.symbols, 1)?;
    eprintln!("tick {:?}", t.elapsed());
    for (s, v) in &tick.counters {
        println!(
            "{:24} {} {:?} via {} {:?} = {v}",
            s.metric.name(),
            s.dev,
            s.cause().map(|c| c.name()).or(s.fsync().map(|c| c.name())),
            s.via,
            s.stack
        );
    }
    for (s, h) in &tick.histograms {
        println!(
            "{:24} {} {:?} via {} n {} sum {} min {} p50 {:?} p99 {:?} max {}",
            s.metric.name(),
            s.dev,
            s.cause().map(|c| c.name()).or(s.fsync().map(|c| c.name())),
            s.via,
            h.count,
            h.sum,
            h.min,
            h.quantile(0.5),
            h.quantile(0.99),
            h.max
        );
    }
    println!("events {} seen {:?}", tick.events.len(), tick.events_seen);
    for p in &tick.processes {
        println!("{p:?}");
    }
    for l in &tick.losses {
        println!("{l:?}");
    }
    for s in &tick.stacks {
        println!("{} {}", s.id, s.frames.join(" "));
    }
    for c in tr.costs() {
        println!(
            "{:28} runs {:8} ns/run {:.0}",
            c.program,
            c.runs,
            c.run_ns as f64 / c.runs.max(1) as f64
        );
    }
    drop(st);
    Ok(())
}
