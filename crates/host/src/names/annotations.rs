//! What labels and annotations say of a container's place in a pod, or of its name.
//!
//! Each runtime has keys of its own; only these are read, because the others are anybody's and may hold anything.

use quell_engine::snapshot::PodContainer;
use serde::{Deserialize, Serialize};

use super::state::text;

/// The labels and annotations that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Annotations {
    #[serde(rename = "io.kubernetes.cri.container-name", skip_serializing_if = "Option::is_none")]
    cri_container: Option<String>,
    #[serde(rename = "io.kubernetes.cri.container-type", skip_serializing_if = "Option::is_none")]
    cri_type: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-name", skip_serializing_if = "Option::is_none")]
    cri_pod: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-namespace", skip_serializing_if = "Option::is_none")]
    cri_namespace: Option<String>,
    #[serde(rename = "io.kubernetes.cri.image-name", skip_serializing_if = "Option::is_none")]
    cri_image: Option<String>,
    /// CRI-O's and docker's under a kubelet.
    #[serde(rename = "io.kubernetes.container.name", skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(rename = "io.kubernetes.pod.name", skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(rename = "io.kubernetes.pod.namespace", skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(rename = "io.kubernetes.cri-o.ContainerType", skip_serializing_if = "Option::is_none")]
    crio_type: Option<String>,
    #[serde(rename = "io.kubernetes.cri-o.ImageName", skip_serializing_if = "Option::is_none")]
    crio_image: Option<String>,
    #[serde(rename = "io.kubernetes.cri-o.LogPath", skip_serializing_if = "Option::is_none")]
    crio_log_path: Option<String>,
    #[serde(rename = "io.kubernetes.docker.type", skip_serializing_if = "Option::is_none")]
    docker_type: Option<String>,
    #[serde(rename = "nerdctl/name", skip_serializing_if = "Option::is_none")]
    nerdctl_name: Option<String>,
}

impl Annotations {
    /// The container's place in a pod.
    pub(super) fn pod(&self) -> Option<PodContainer> {
        let namespace = self.cri_namespace.as_ref().or(self.namespace.as_ref())?;
        let pod = self.cri_pod.as_ref().or(self.pod.as_ref())?;
        let types = [&self.cri_type, &self.crio_type, &self.docker_type];
        let holds_pod = types.into_iter().flatten().any(|is| matches!(is.as_str(), "sandbox" | "podsandbox"));
        let container = self.cri_container.as_ref().or(self.container.as_ref()).filter(|_| !holds_pod);
        place(namespace, pod, container.map(String::as_str))
    }

    /// The name that people gave it, outside of a pod.
    pub(super) fn name(&self) -> Option<String> {
        self.nerdctl_name.as_deref().and_then(text)
    }

    pub(super) fn image(&self) -> Option<String> {
        self.cri_image.as_deref().or(self.crio_image.as_deref()).and_then(text)
    }

    pub(super) fn log_path(&self) -> Option<String> {
        self.crio_log_path.as_deref().and_then(text)
    }
}

/// The place in a pod that a name of the form `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT` tells.
///
/// No part of it can hold an underscore: Kubernetes forbids it.
pub(super) fn pod_of_name(name: &str) -> Option<PodContainer> {
    let mut parts = name.strip_prefix("k8s_")?.split('_');
    let (container, pod, namespace, _uid) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    place(namespace, pod, Some(container))
}

/// A place in a pod; `POD` is what the kubelet calls the container that only holds the pod's namespaces.
fn place(namespace: &str, pod: &str, container: Option<&str>) -> Option<PodContainer> {
    let container = container.filter(|name| *name != "POD").and_then(text);
    Some(PodContainer { namespace: text(namespace)?, pod: text(pod)?, container })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(json: &str) -> Option<(String, String, Option<String>)> {
        let annotations: Annotations = serde_json::from_str(json).unwrap();
        annotations.pod().map(|pod| (pod.namespace, pod.pod, pod.container))
    }

    fn shop(container: Option<&str>) -> Option<(String, String, Option<String>)> {
        Some(("shop".into(), "cart-7d".into(), container.map(str::to_owned)))
    }

    #[test]
    fn each_runtime_s_keys_tell_the_place() {
        let containerd = r#""io.kubernetes.cri.sandbox-name":"cart-7d","io.kubernetes.cri.sandbox-namespace":"shop""#;
        let web = format!(r#"{{{containerd},"io.kubernetes.cri.container-name":"web"}}"#);
        assert_eq!(pod(&web), shop(Some("web")));
        assert_eq!(pod(&format!(r#"{{{containerd},"io.kubernetes.cri.container-type":"sandbox"}}"#)), shop(None));
        let crio = r#""io.kubernetes.pod.name":"cart-7d","io.kubernetes.pod.namespace":"shop""#;
        assert_eq!(pod(&format!(r#"{{{crio},"io.kubernetes.container.name":"web","other":1}}"#)), shop(Some("web")));
        assert_eq!(pod(&format!(r#"{{{crio},"io.kubernetes.container.name":"POD"}}"#)), shop(None));
        assert_eq!(pod("{}"), None);
    }

    #[test]
    fn the_kubelet_s_names_tell_the_place_too() {
        let told = |name| pod_of_name(name).map(|pod| (pod.namespace, pod.pod, pod.container));
        assert_eq!(told("k8s_web_cart-7d_shop_8a5f1c2e_0"), shop(Some("web")));
        assert_eq!(told("k8s_POD_cart-7d_shop_8a5f1c2e_0"), shop(None));
        assert_eq!(told("k8s_web_cart-7d"), None);
        assert_eq!(told("mysql"), None);
    }
}
