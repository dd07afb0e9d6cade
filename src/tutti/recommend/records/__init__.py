"""Records of the recommender: frozen data, without behaviour.

- `request`         what is a recommendation made from?
- `draft`           what does a strategy propose, before any pod is bound?
- `new_nodes`       which nodes are bought, one by one and counted?
- `scale_ups`       how are single new nodes merged into scale-ups?
- `recommendation`  what is the answer to a request?
- `down_plan`       which nodes can be removed, and in which steps?
- `simulation`      what happened in each round of a scaling simulation?

A purchase has a different shape at each stage:

- `Draft` of `DraftNode`: proposed by a strategy (`recommend.search`); offerings are numbers of the problem, nodes have
  no names.
- `Purchase` (`autoscalers.shared.purchase`): proposed by the model of another autoscaler; `search.drafts` turns it into
  a draft.
- `PlacedDraft` (`replay.place_draft`): a draft in the cluster, with node names; used only while Tutti binds.
- `BoundPurchase` (`replay.binding`): the binder has placed the pods; `search.selection` ranks these.
- `NewNode`: one node of the recommendation or of a scale-down plan, with plain strings instead of an offering, for
  output.
- `ScaleUp`: new nodes of the same pool, zone, type and template, counted; what an autoscaler is told.
- `ComparedPurchase` (`recommend.compare`): ours and other autoscalers' purchases side by side; offerings with counts.
- `JoinedNode`: a node that joined in a scaling simulation.
"""
