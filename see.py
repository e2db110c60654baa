import sys, logging
from lastcall.lab import virtual
from lastcall.lab.simulation import chaos
from lastcall.lab.simulation.rehearsal import Rehearsal
from lastcall.lab.simulation.invariants import judge
seed=int(sys.argv[1]); node=sys.argv[2]; a=float(sys.argv[3]); b=float(sys.argv[4])
s=chaos.scenario(seed)
H=[]
lines=[]
class L(logging.Handler):
    def emit(self, r):
        try: t=H[0].clock.boottime()-H[0].start
        except Exception: return
        lines.append((t, f"LOG {r.name.split('.')[-1]}: {r.getMessage()[:160]}"))
logging.getLogger().addHandler(L()); logging.getLogger().setLevel(logging.INFO)
async def main():
    r=Rehearsal(s, seed); H.append(r)
    await r.run()
    v=judge(r.record())
    t=r.cluster.truth
    for h in t.happenings:
        if h.node==node or node=='-': lines.append((h.at-r.start, f"  {h.node} {t.pods[h.uid].key} {h.uid[:4]} {h.what}"))
    for p in t.powers:
        if p.node==node or node=='-': lines.append((p.at-r.start, f"POWER {p.node} {p.what} {p.amount}"))
    seen=set()
    for f in t.faults: lines.append((f.at-r.start, f"   fault {f.kind} {f.step}"))
    for x in v: lines.append((x.at-r.start, f"!!!! {x.rule.name} {x.what}"))
    print(s.agent.groups, s.boot)
    for w in s.workloads: print(w.kind.name,w.name,w.replicas,"grace",w.grace,"starts",w.starts,"ready",w.ready,"pre",w.pre_stop,"ends",w.ends,"lives",w.lives, w.volume, w.priority_class)
    for e in s.timeline: print("  ", round(e.at,1), e.verb.name, e.nodes, e.lasts, e.amount)
    for at,l in sorted(lines,key=lambda x:x[0]):
        if a<=at<=b: print(f"{at:8.2f} {l}")
virtual.run(main())
