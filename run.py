import sys, time, logging, traceback
from lastcall.lab import virtual
from lastcall.lab.simulation import chaos
from lastcall.lab.simulation.rehearsal import Rehearsal
from lastcall.lab.simulation.invariants import judge
logging.disable(logging.CRITICAL)
T=0
async def main(seed, out):
    s=chaos.scenario(seed)
    r=Rehearsal(s, seed)
    await r.run()
    out.append((r.start, judge(r.record())))
def go(seed):
    c=time.process_time(); out=[]
    try:
        virtual.run(main(seed,out))
    except BaseException as e:
        print(seed, "EXC", repr(e)[:200], flush=True); traceback.print_exc(limit=-4) if len(sys.argv)>3 else None
        if isinstance(e, KeyboardInterrupt): raise
        return
    start, v = out[0]
    if v: print(seed, f"{time.process_time()-c:.2f}s", [f"{x.at-start:.1f} {x.rule.name}: {x.what}" for x in v][:3], flush=True)
for seed in range(int(sys.argv[1]), int(sys.argv[2])): go(seed)
print("done", sys.argv[1:], time.process_time())
