// FleetView to and from its message (proto/fleet.proto), which is only named here: generated
// headers stay out of ours.
#ifndef TRIREME_LAUNCHER_FLEET_MESSAGES_H_
#define TRIREME_LAUNCHER_FLEET_MESSAGES_H_

#include "launcher/fleet_view.h"

namespace trireme::v1 {
class FleetStatus;
}

namespace trireme::launcher {

void SetFleetStatus(const FleetView& view, v1::FleetStatus* out);
FleetView FleetViewOf(const v1::FleetStatus& status);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_MESSAGES_H_
